"""The real server, which fails in every 20th request: run by tests as a process that can be killed.

    python faulty_server.py CORPUS PORT DIALECT LOG

Appends to LOG a letter for each failure: e (500), u (503), r (connection reset), s (slow).
"""

import socket
import struct
import sys
import threading
import time
from itertools import count, cycle
from pathlib import Path

from prover.retrieval import server
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.corpus import read_corpus
from prover.retrieval.server import Handler, RetrievalServer

EVERY = 20
SLOW_S = 0.8


def main() -> None:
    """Serve until killed."""
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
    RetrievalServer(Bm25Retriever(read_corpus(Path(corpus))), port=int(port), dialect=dialect).serve()


if __name__ == "__main__":
    main()
