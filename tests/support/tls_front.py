"""TLS in front of a plain server: `python -m tests.support.tls_front PORT CERTIFICATE KEY` prints a port."""

import asyncio
import contextlib
import ssl
import sys


async def serve(port: int, certificate: str, key: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def pass_on(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        here, there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(client, there), _copy(here, back))

    server = await asyncio.start_server(pass_on, "127.0.0.1", ssl=context, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:]))
