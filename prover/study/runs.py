"""Runs what a plan asks for, several runs at a time; what is done is not done again, what was begun goes on."""

import json
import multiprocessing
import shutil
from collections.abc import Callable, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

from prover.config import effective_yaml
from prover.errors import ConfigError
from prover.folder import RunFolder
from prover.study.plan import Job, StudyConfig, jobs, run_folder
from prover.study.record import Record
from prover.train import train

_RECORD = "record.json"


def run(
    plan: StudyConfig,
    out: Path,
    *,
    processes: int,
    watch: Callable[[int, int], None],
    stored: Sequence[Record] = (),
) -> list[Record]:
    """Train everything that is missing in ``out`` and among the stored records.

    Runs of one start and seed follow each other in one process, since some are matched to others.

    Args:
        plan: What to train.
        out: Folder of the study; keeps the metrics and evaluations of every run, not its checkpoints.
        processes: Runs side by side.
        watch: Told after each start and seed how many runs are done, and how many there are.
        stored: Records of runs that were trained elsewhere. Of their settings only the number of updates is known.

    Returns:
        Records by start, method and seed, in the plan's order.

    Raises:
        ConfigError: a run that is there was trained with other settings, or a stored one had other updates.
        ProverError: a run cannot be trained; the runs beside it go on to the end of their seed.
    """
    blocks = list(jobs(plan, out).values())
    total = sum(map(len, blocks))
    known = {record.key: record for record in stored}
    for job in (job for block in blocks for job in block if job.key in known):
        _check_updates(job, len(known[job.key].success_U), f"the stored record of {' '.join(map(str, job.key))}")
    todo = iter([missing for block in blocks if (missing := _missing(block, known.keys()))])
    # Fresh processes: threads of torch do not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        # No more than are running: one that waits in the pool would still be begun after an error or an interrupt.
        running = {pool.submit(_train_all, block) for block in islice(todo, processes)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for block in done:
                block.result()
            running |= {pool.submit(_train_all, block) for block in islice(todo, len(done))}
            watch(len(finished(plan, out, stored)), total)
    return finished(plan, out, stored)


def finished(plan: StudyConfig, out: Path, stored: Sequence[Record] = ()) -> list[Record]:
    """Records of the plan's runs that are done, by start, method and seed in its order; stored ones come first."""
    known = {record.key: record for record in stored}
    found = []
    for start in plan.starts:
        for method in plan.methods:
            for seed in range(plan.first_seed, plan.first_seed + plan.seeds):
                file = run_folder(out, start, method, seed) / _RECORD
                if (start, method, seed) in known:
                    found.append(known[start, method, seed])
                elif file.is_file():
                    found.append(Record.of_json(json.loads(file.read_text(encoding="utf-8"))))
    return found


def _missing(block: Sequence[Job], known: Set[tuple[str, str, int]]) -> list[Job]:
    """The runs that no record is stored of, and those that one of them has to keep up with: it reads their metrics."""
    missing = [job for job in block if job.key not in known]
    matched = {job.config.rollout.match_turns for job in missing}
    return [job for job in block if job in missing or job.config.run in matched]


def _train_all(block: Sequence[Job]) -> None:
    parent = multiprocessing.parent_process()
    for job in block:
        if parent is not None and not parent.is_alive():  # Killed: nobody waits for this any more.
            return
        _train(job)


def _train(job: Job) -> None:
    folder = job.config.run
    assert folder is not None, "jobs() names a folder"
    begun = (folder / "config.yaml").exists()
    # What is there must be of this plan: figures of other settings would be shown under the new ones' name.
    RunFolder(folder).check(effective_yaml(job.config), resume=begun)
    if (folder / _RECORD).exists():
        record = Record.of_json(json.loads((folder / _RECORD).read_text(encoding="utf-8")))
        _check_updates(job, len(record.success_U), f"{folder}")
        return
    result = train(job.config, resume=begun)
    record = Record.of_run(job.start, job.method, job.seed, folder, (result.before, result.after))
    result.folder.write(_RECORD, record.json())
    # A hundred runs would fill a disk.
    for part in (result.folder.checkpoints, result.folder.groups):
        shutil.rmtree(part, ignore_errors=True)
    (folder / "trajectories.jsonl").unlink(missing_ok=True)


def _check_updates(job: Job, updates: int, where: str) -> None:
    if updates != job.config.optim.updates:
        raise ConfigError(
            f"expected a run of {job.config.optim.updates} updates in {where}, got one of {updates}; name another "
            "--out DIR for the changed plan, and leave out --records"
        )
