"""The HTTP interface that every service has: GET /healthz, and what its own routes add."""

from aiohttp import web

from services.common.errors import ServiceError
from services.common.service import Service
from services.common.settings import ServiceSettings

MAX_BODY_BYTES = 64 * 1024
"""aiohttp reads no more; what a route accepts may be less."""


async def serve_http(service: Service, settings: ServiceSettings) -> web.AppRunner | None:
    """Listen on the configured port; None without one. Raises ServiceError when the port cannot be had."""
    if not settings.http_port:
        return None

    async def healthz(_: web.Request) -> web.Response:
        problem = service.unhealthy()
        body = {"service": service.name, "status": problem or "consuming", **counters(service)}
        return web.json_response(body, status=503 if problem else 200)

    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.add_routes([web.get("/healthz", healthz), *service.routes])
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.http_host, settings.http_port).start()
    except OSError as taken:
        await runner.cleanup()
        raise ServiceError(
            f"cannot listen on {settings.http_host}:{settings.http_port} ({taken.strerror}); "
            "free the port or set another TAILPACK_HTTP_PORT"
        ) from taken
    return runner


def counters(service: Service) -> dict[str, int]:
    """Return what the stage has done since it was started."""
    stage = service.stage
    return {
        "written": stage.written,
        "duplicates_dropped": stage.duplicates,
        "refused": stage.refused,
        "unacknowledged": stage.open.count,
    }
