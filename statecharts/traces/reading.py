"""The bytes of a trace as values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

from ..policies import InterruptionPolicy, Policies
from .codec import Json, JsonObject
from .records import FORMAT, VERSION, Gap, Header, Record, Start, Trace, TraceError, known


def parse_trace(data: bytes, name: str = "trace") -> Trace:
    """Read a whole trace. Raises `TraceError`; a last line that was cut off is left out and noted."""
    lines = data.split(b"\n")
    header: Header | None = None
    records: list[Record] = []
    gaps: list[Gap] = []
    restarts: list[Start] = []
    is_truncated = False
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        where = f"{name}, line {place + 1}"
        try:
            raw = cast("Json", json.loads(line))
        except ValueError:
            is_truncated = header is not None and place == len(lines) - 1
            if is_truncated:
                break
            raise TraceError(f"{where} is not JSON: this is no trace, or it was damaged") from None
        if not isinstance(raw, dict):
            raise TraceError(f"{where} is not a JSON object: this is no trace, or it was damaged")
        if header is None or "format" in raw:
            further = _parse_header(raw, where)
            if header is not None:
                restarts.append(_continued(header, further, where))
            header = header or further
        elif "gap" in raw:
            gaps.append(known(Gap, raw, where))
        else:
            record = known(Record, raw, where)
            if records and record.number <= records[-1].number:
                raise TraceError(f"{where}: record {record.number} after {records[-1].number}: these are two traces")
            records.append(record)
    if header is None:
        raise TraceError(f"{name} is empty")
    return Trace(name, header, tuple(records), tuple(gaps), tuple(restarts), is_truncated)


def decode_policies(raw: JsonObject) -> Policies:
    """The policies of a header. Raises `TraceError` when they are not the product's own."""
    given = dict(raw)
    interruption = given.pop("interruption", None)
    kind = interruption.get("kind") if isinstance(interruption, dict) else None
    if not isinstance(interruption, dict) or kind != InterruptionPolicy.__name__:
        raise TraceError(f"the trace was made under the interruption policy {kind}: hand it over to replay it")
    rules = {name: value for name, value in interruption.items() if name != "kind"}
    return replace(
        known(Policies, given, "policies"), interruption=known(InterruptionPolicy, rules, "interruption policy")
    )


def _parse_header(raw: JsonObject, where: str) -> Header:
    if raw.get("format") != FORMAT:
        raise TraceError(f"{where}: a trace begins with a header of the format {FORMAT!r}, which this is not")
    if raw.get("version") != VERSION:
        raise TraceError(
            f"{where}: trace version {raw.get('version')} (by {raw.get('writer') or 'an unnamed program'}) is not one "
            f"that this program reads ({VERSION}): read it with the program that wrote it"
        )
    return known(Header, {name: value for name, value in raw.items() if name not in ("format", "version")}, where)


def _continued(header: Header, further: Header, where: str) -> Start:
    if (further.chart, further.fingerprint, further.redacted) != (header.chart, header.fingerprint, header.redacted):
        raise TraceError(f"{where}: a header of another chart, version or redaction: read the two traces apart")
    return further.start
