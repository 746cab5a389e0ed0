"""Workers of a Dask cluster. They need this package, and see recordings and results under the same paths. The only place that
knows Dask."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from ..errors import MissingPackage, RneaError

PATIENCE = 10.0  # s, for the scheduler to answer


@contextmanager
def connected(address: str) -> Iterator[tuple[Executor, int]]:
    """What hands work to the cluster of a scheduler, and how many threads work there."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackage("--dask needs distributed", "dask") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise RneaError(f"--dask {address}: no scheduler answers: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise RneaError(f"--dask {address}: the cluster has no workers")
        yield client.get_executor(pure=False), threads
