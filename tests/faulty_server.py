"""The real retrieval server as a process that fails in every 20th request and can be killed and started again."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from itertools import count, cycle
from pathlib import Path
from typing import Any

from prover.retrieval import Passage, server
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.corpus import read_corpus
from prover.retrieval.server import Handler, RetrievalServer

EVERY = 20
SLOW_S = 0.8


class FaultyServer:
    """A process of the server, at one port from first to last; used in a ``with`` block.

    Its failures are, in turn: status 500, status 503, a connection that is reset, an answer that is late.
    """

    def __init__(self, folder: Path, passages: Iterable[Passage], dialect: str) -> None:
        self._log = folder / "faults"
        self._log.touch()
        rows = [json.dumps({"id": p.id, "title": p.title, "text": p.text}) for p in passages]
        (folder / "corpus.jsonl").write_text("\n".join(rows))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._words = [sys.executable, __file__, str(folder), str(port), dialect, str(self._log)]

    def __enter__(self) -> "FaultyServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, without waiting until it listens."""
        self._process = subprocess.Popen(self._words, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def wait(self) -> None:
        """Until it listens."""
        address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        while True:
            with socket.socket() as probe:
                if not probe.connect_ex(address):
                    return
            time.sleep(0.05)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(20)

    def faults(self) -> Counter[str]:
        """How often it has failed on purpose, by kind."""
        return Counter(self._log.read_text())


def main() -> None:
    """Serve until killed; append a letter to a file for each failure."""
    corpus, port, dialect, log = sys.argv[1:]
    requests, kinds = count(), cycle("eurs")
    lock = threading.Lock()

    class Faulty(Handler):
        def do_POST(self) -> None:  # noqa: N802 - the name is that of the standard library
            with lock:
                fault = next(kinds) if next(requests) % EVERY == 2 else ""
                with Path(log).open("a") as faults:
                    faults.write(fault)
            if fault == "r":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            elif fault in ("e", "u"):
                self.rfile.read(int(self.headers["Content-Length"]))
                self._send(500 if fault == "e" else 503, b"injected")
            else:
                if fault == "s":
                    time.sleep(SLOW_S)
                super().do_POST()

    server.Handler = Faulty
    spoken: Any = dialect
    RetrievalServer(Bm25Retriever(read_corpus(Path(corpus))), port=int(port), dialect=spoken).serve()


if __name__ == "__main__":
    main()
