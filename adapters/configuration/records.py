"""Records of providers: a table of the file, validated whole by the provider's own settings.

A record says its `kind`; which role it plays follows from that, for a kind is unique among the roles of one table.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

from pydantic import PlainValidator, SerializeAsAny, StringConstraints, TypeAdapter, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from ..providers.declaration import ProviderSettings
from ..providers.registry import MODEL_ROLES, VOICE_ROLES, Role, UnknownKind, find_in

RECORD_REFUSED = "record_refused"
"""The type of the error that holds, as `errors`, what a provider's settings refuse."""

RecordName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
_NAME: TypeAdapter[str] = TypeAdapter(RecordName)

OLDER_KINDS = {"openai": "openai-chat"}
"""Kinds that were renamed, in `responder` and `[model_settings]`."""
_DEFAULT_KINDS: dict[tuple[Role, ...], str] = {(Role.RECOGNIZER,): "whisper"}


def _record(value: object, info: ValidationInfo, *roles: Role) -> ProviderSettings:
    if isinstance(value, ProviderSettings):
        return value
    if not isinstance(value, dict):
        raise PydanticCustomError("record_type", "must be a table with a kind")
    table = cast("dict[str, Any]", value)
    kind = table.get("kind", _DEFAULT_KINDS.get(roles))
    if not isinstance(kind, str):
        raise PydanticCustomError("record_kind", "needs kind")
    if Role.RESPONDER in roles:
        kind = OLDER_KINDS.get(kind, kind)
    try:
        _, provider = find_in(roles, kind)
    except UnknownKind as unknown:
        raise _refused([{"loc": ("kind",), "type": "unknown_kind", "msg": str(unknown), "ctx": {}}]) from None
    try:
        # JSON, because only there does strict validation take names for enums and texts for paths.
        whole = json.dumps({**table, "kind": kind}, default=str)
        return provider.settings.model_validate_json(whole, context=info.context)
    except ValidationError as refused:
        raise _refused(refused.errors(include_input=False, include_url=False)) from None


def _refused(errors: list[Any]) -> PydanticCustomError:
    return PydanticCustomError(RECORD_REFUSED, "a provider refuses its settings", {"errors": errors})


def _inline_or_name(value: object, info: ValidationInfo, role: Role) -> ProviderSettings | str:
    if isinstance(value, str):
        return _NAME.validate_python(value)
    return _record(value, info, role)


def _recognizer(value: object, info: ValidationInfo) -> ProviderSettings | str:
    return _inline_or_name(value, info, Role.RECOGNIZER)


def _responder(value: object, info: ValidationInfo) -> ProviderSettings | str:
    return _inline_or_name(value, info, Role.RESPONDER)


def _voice(value: object, info: ValidationInfo) -> ProviderSettings | str:
    return _inline_or_name(value, info, Role.SYNTHESIZER)


def _model_record(value: object, info: ValidationInfo) -> ProviderSettings:
    return _record(value, info, *MODEL_ROLES)


def _voice_record(value: object, info: ValidationInfo) -> ProviderSettings:
    return _record(value, info, *VOICE_ROLES)


ModelRecord = Annotated[SerializeAsAny[ProviderSettings], PlainValidator(_model_record)]
"""A text model, or a native realtime one."""
VoiceRecord = Annotated[SerializeAsAny[ProviderSettings], PlainValidator(_voice_record)]
"""A recogniser or a synthesiser."""
RecognizerChoice = Annotated[SerializeAsAny[ProviderSettings] | str, PlainValidator(_recognizer)]
ResponderChoice = Annotated[SerializeAsAny[ProviderSettings] | str, PlainValidator(_responder)]
VoiceChoice = Annotated[SerializeAsAny[ProviderSettings] | str, PlainValidator(_voice)]
"""A table of its own, or the name of a record."""
