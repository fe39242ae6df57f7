"""How fast the ALFWorld engine is on this machine, on one core.

    python benchmarks/alfworld_speed.py [TRIAL_FOLDER]

Plays one game at random and prints what a step, a snapshot and a thousand live states cost. Without a folder the game
is a generated kitchen. Where ``textworld`` is installed and the game is one of ALFWorld's own, stock TextWorld plays
the same commands, and the ratio is printed.
"""

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from prover.envs.alfworld import ALFWorldEnv, Game, State
from prover.envs.alfworld.households import load
from prover.seeds import generator


def kitchen() -> Game:
    """The generated kitchen with the most receptacles among the first hundred."""
    tasks = [task for task in ALFWorldEnv().tasks("dev")[:100] if "kitchen" in task]
    return max(map(load, tasks), key=lambda game: len(game.receptacles))


def walk(game: Game, n: int, seed: int = 0) -> tuple[list[str], list[State]]:
    """Random admissible commands, and the states they lead to; a new episode begins every 50 commands."""
    draws = generator(seed).random(n)
    commands, states = [], []
    state = game.initial
    for turn, draw in enumerate(draws):
        state = game.initial if turn % 50 == 0 else state
        admissible = game.admissible(state)
        commands.append(admissible[int(draw * len(admissible))])
        state, _ = game.step(state, commands[-1])
        states.append(state)
    return commands, states


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median wall-clock seconds of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def replay(game: Game, commands: list[str]) -> None:
    """Play recorded commands: a step, the admissible commands and the verdict, each time."""
    state = game.initial
    for turn, command in enumerate(commands):
        state, _ = game.step(game.initial if turn % 50 == 0 else state, command)
        game.admissible(state)
        game.won(state)


def save_and_restore(env: ALFWorldEnv, n: int) -> None:
    """Keep the engine's state and take it back, as a branching rollout does."""
    for _ in range(n):
        snapshot = env.snapshot()
        env._now = snapshot  # the part of restore() that does not build the observation's info


def live_megabytes(game: Game, n: int) -> float:
    """Memory of ``n`` states of one walk that are kept at once."""
    tracemalloc.start()
    _, states = walk(game, n, seed=1)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(states) == n
    return used / 1e6


def stock_seconds(folder: Path, commands: list[str]) -> float | None:
    """Seconds per step of stock TextWorld on the same commands; None where it is not installed."""
    try:
        import textworld
    except ImportError:
        return None
    env = textworld.start(str(folder / "game.tw-pddl"))
    env.reset()
    return seconds(lambda: [env.step(command) for command in commands], repeats=1) / len(commands)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of a trial, with game.tw-pddl in it")
    folder = parser.parse_args().folder
    game = Game.load(folder) if folder else kitchen()
    commands, _ = walk(game, 5000)
    step = seconds(lambda: replay(game, commands)) / len(commands)
    env = ALFWorldEnv()
    env.reset(options={"task": env.tasks("dev")[0]})
    print(f"receptacles, objects             {len(game.receptacles)}, {len(game.objects)}")
    if folder:
        print(f"load                             {seconds(lambda: Game.load(folder)) * 1e3:.1f} ms")
    print(f"step + admissible + won          {1 / step:,.0f} per second")
    print(f"snapshot + restore of the state  {seconds(lambda: save_and_restore(env, 10_000)) / 1e4 * 1e6:.2f} us")
    print(f"a thousand live states           {live_megabytes(game, 1000):.2f} MB")
    stock = stock_seconds(folder, commands[:20]) if folder else None
    if stock is not None:
        print(f"stock TextWorld                  {1 / stock:,.1f} per second, {stock / step:,.0f} times slower")


if __name__ == "__main__":
    main()
