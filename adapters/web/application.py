"""The ASGI application: the interface, the page, and what stands before them."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from .access import Access, RateLimit
from .api import Api
from .conversations import Conversations
from .errors import CODES, ApiError
from .explaining import explanation_route
from .guard import Guard
from .options import WebOptions

PACKAGE = "voicechart.adapters.web"
PAGE = "page"
INDEX = "index.html"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


def web_application(conversations: Conversations, options: WebOptions) -> ASGIApp:
    """Everything that is served."""
    access = Access(host=options.host, token=options.token, origins=options.origins)
    api = Api(conversations, access, options)
    pages = [Route("/", _page, methods=["GET"]), Route("/page/{name}", _page, methods=["GET"])]
    explanation = explanation_route(conversations, is_shown=options.show_chart)
    others = [
        Middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "last-event-id"],
        )
    ]
    application = Starlette(
        routes=[*api.routes, explanation, *pages],
        middleware=others if options.origins else [],
        exception_handlers={HTTPException: _http_error, ApiError: _api_error, Exception: _defect},
    )
    # Redirects to another spelling of a path would answer where nothing is.
    application.router.redirect_slashes = False
    rate = RateLimit(options.requests_per_minute, options.burst)
    return Guard(application, access=access, rate=rate, max_body_bytes=options.max_body_bytes)


async def _page(request: Request) -> Response:
    """A file of the page: one folder, without sub-folders, read from the package."""
    name: str = request.path_params.get("name", INDEX)
    folder: Traversable = files(PACKAGE).joinpath(PAGE)
    suffix = name[name.rfind(".") :] if "." in name else ""
    if not folder.is_dir():
        raise ApiError(404, "no_page", "this installation holds no page; the interface is at /api, see /openapi.json")
    found = next((file for file in folder.iterdir() if file.name == name and file.is_file()), None)
    if found is None or suffix not in MEDIA_TYPES:
        raise ApiError(404, "not_found", "the page has no file of that name")
    return Response(found.read_bytes(), headers={"content-type": MEDIA_TYPES[suffix]})


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return Response(error.body, error.status, error.headers, "application/json")


async def _defect(request: Request, error: Exception) -> Response:
    """What nobody foresaw; the guard logs it."""
    return await _api_error(request, ApiError(500, "internal_error", "this is a defect; the log has more"))


async def _http_error(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths, wrong methods."""
    assert isinstance(error, HTTPException)
    message = {404: "there is nothing at this path; see /openapi.json", 405: "not with this method; see Allow"}
    told = ApiError(
        error.status_code,
        CODES.get(error.status_code, "error"),
        message.get(error.status_code, error.detail),
        headers=dict(error.headers or {}),
    )
    return await _api_error(request, told)
