"""The adapter: contract, snapshots, options."""

import json
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env

from prover.checks import check_text_env
from prover.envs.webshop import Session, WebShopEnv
from prover.errors import ConfigError, DataError, EnvError, SnapshotError, UnknownNameError
from prover.protocols import TextEnv
from prover.seeds import generator


@pytest.fixture
def env() -> WebShopEnv:
    """The environment in the made-up shop."""
    return WebShopEnv()


@pytest.fixture
def task(env: WebShopEnv) -> str:
    """A goal of the made-up shop."""
    return env.tasks("train")[0]


def test_contract(env: WebShopEnv) -> None:
    """It is a TextEnv and passes Gymnasium's own check."""
    assert isinstance(env, TextEnv)
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("observation", ["text", "text_rich", "brief"])
def test_conformance(observation: str) -> None:
    """Every rule of the conformance kit holds."""
    report = check_text_env(partial(WebShopEnv, observation=observation), raises=False)
    assert report.passed, str(report)


def test_conformance_on_public_products(folder: Path) -> None:
    """Every rule holds on WebShop's own products."""
    report = check_text_env(partial(WebShopEnv, data=str(folder)), raises=False)
    assert report.passed, str(report)


def test_opening(env: WebShopEnv, task: str) -> None:
    """A reset gives the start page with a few searches from the goal's text to choose from."""
    observation, info = env.reset(options={"task": task})
    name, label, text, button = observation.split(" [SEP] ")
    assert (name, label, button) == ("WebShop", "Instruction:", "Search")
    assert text.startswith("Find me ")
    assert (info["success"], info["invalid_action"], info["task"]) == (False, False, task)
    assert info["task_type"] in {"bath", "garden", "kitchen", "office", "travel"}
    assert 2 <= len(info["admissible_actions"]) <= 4
    assert all(action.startswith("search[") for action in info["admissible_actions"])
    assert info["admissible_actions"] == sorted(info["admissible_actions"])


def buy(env: WebShopEnv, task: str, n_options: int = 9) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """Buy what the task asks for, choosing only some of the options."""
    env.reset(options={"task": task})
    player = env.expert(0)
    observation, info = env.reset(options={"task": task})
    chosen = 0
    while True:
        action = player.act(observation, info)
        in_item = env.snapshot().page == "item"
        if in_item and action != "click[< prev]":
            chosen += 1
            action = "click[buy now]" if chosen > n_options else action
        answer = env.step(action)
        observation, info = answer[0], answer[4]
        if answer[2]:
            return answer


def test_purchase_ends_the_episode(env: WebShopEnv, task: str) -> None:
    """The reward comes with the purchase; a further step is an error, after restoring too."""
    observation, reward, terminated, truncated, info = buy(env, task)
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert info["admissible_actions"] == []
    assert observation.startswith("Thank you for shopping with us!")
    assert info["reward_parts"]["r_price"] is True
    for _ in range(2):
        with pytest.raises(EnvError, match=r"expected step\(\) before the end"):
            env.step("search[mug]")
        env.restore(env.snapshot())


def test_threshold() -> None:
    """Half a success is one where the threshold says so: without its color 0.75 or 0.8 of the goal is left."""
    strict, mild = WebShopEnv(reward="value_match"), WebShopEnv(reward="value_match", threshold=0.5)
    task = strict.tasks("test")[0]
    for env, success in ((strict, False), (mild, True)):
        _, reward, _, _, info = buy(env, task, n_options=0)
        assert 0.5 <= reward < 1
        assert info["success"] is success
        assert info["reward_parts"]["r_option"] == 0.0


@pytest.mark.parametrize("action", ["buy a mug", "", "click[moon]", "click[search]", "search[]", "<r>"])
def test_invalid_action(env: WebShopEnv, task: str, action: str) -> None:
    """It leaves the page as it is and is marked."""
    first, _ = env.reset(options={"task": task})
    key = env.state_key()
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == (first, 0.0, False, False)
    assert info["invalid_action"] is True
    assert env.state_key() == key
    assert env.restore(env.snapshot()) == (observation, info)
    assert env.step("search[mug]")[4]["invalid_action"] is False


def walk_and_replay(env: WebShopEnv, fresh: WebShopEnv, n: int, seed: int) -> int:
    """Random steps, snapshots, returns and branches; every branch is then replayed from its reset in ``fresh``.

    Returns the number of steps that were compared.
    """
    rng = generator(seed)
    tasks = env.tasks("train")
    odd = ["click[moon]", "search[red]", "search[<r>]", "dance", "click[buy now]"]
    kept: list[tuple[Session, str, tuple[str, ...], tuple[Any, ...]]] = []
    compared = steps = 0
    while steps < n:
        if not kept or rng.random() < 0.3:
            task = tasks[int(rng.integers(len(tasks)))]
            path: tuple[str, ...] = ()
            answers: tuple[Any, ...] = (env.reset(options={"task": task}),)
        else:
            snapshot, task, path, answers = kept[int(rng.integers(len(kept)))]
            assert env.restore(snapshot) == (answers[-1][0], answers[-1][-1])
        while rng.random() > 0.1 and steps < n:
            choices = [*answers[-1][-1]["admissible_actions"], odd[int(rng.integers(len(odd)))]]
            action = choices[int(rng.integers(len(choices)))]
            path, answers = (*path, action), (*answers, env.step(action))
            steps += 1
            if answers[-1][2]:
                break
            if rng.random() < 0.2:
                kept = [*kept[-30:], (env.snapshot(), task, path, answers)]
        straight = [fresh.reset(options={"task": task}), *(fresh.step(action) for action in path)]
        assert straight == list(answers)
        assert fresh.state_key() == env.state_key()
        compared += len(path)
    return compared


@pytest.mark.parametrize("observation", ["text", "text_rich", "brief"])
def test_branches_agree_with_a_straight_replay(observation: Any) -> None:
    """Whatever was saved and brought back, each episode is that of its actions alone."""
    make = partial(WebShopEnv, observation=observation)
    assert walk_and_replay(make(), make(), 3000, 0) >= 3000


def test_snapshot_elsewhere(env: WebShopEnv, task: str) -> None:
    """A session comes back after pickling or JSON, in another instance, twice."""
    env.reset(options={"task": task})
    env.step("search[mug]")
    snapshot, key = env.snapshot(), env.state_key()
    expected = env.step("click[next >]")
    for copy in (pickle.loads(pickle.dumps(snapshot)), Session.from_json(json.loads(json.dumps(snapshot.to_json())))):
        other = WebShopEnv()
        other.restore(copy)
        assert other.state_key() == key
        assert other.step("click[next >]") == expected


def test_state_key_in_another_process(env: WebShopEnv, task: str) -> None:
    """The key of a state is the same in every process."""
    env.reset(options={"task": task})
    code = (
        "from prover.envs.webshop import WebShopEnv\n"
        f"env = WebShopEnv(); env.reset(options={{'task': {task!r}}}); print(env.state_key())"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env={"PYTHONHASHSEED": "7", **_paths()}, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == env.state_key()


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path)}


def test_foreign_snapshots(env: WebShopEnv, task: str) -> None:
    """What is no session, or one of another shop, is refused."""
    env.reset(options={"task": task})
    with pytest.raises(SnapshotError, match="expected a Session, got dict"):
        env.restore({"task": task})  # type: ignore[arg-type]  # the misuse
    with pytest.raises(SnapshotError, match="expected a session of this shop, got one with task 'x'"):
        env.restore(Session(task="x"))


def test_unknown_names(env: WebShopEnv) -> None:
    """Tasks, splits and options that there are not."""
    with pytest.raises(UnknownNameError, match="expected the id of a goal"):
        env.reset(options={"task": "x"})
    with pytest.raises(UnknownNameError, match=r"'by_product' \(dev, test, train\), got 'x'"):
        env.tasks("x")
    with pytest.raises(ConfigError, match=r"got also \['color'\]"):
        env.reset(options={"color": "red"})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"goals": "x"}, ConfigError),
        ({"splits": "x"}, ConfigError),
        ({"reward": "x"}, ConfigError),
        ({"observation": "html"}, ConfigError),
        ({"index": "lucene"}, ConfigError),
        ({"threshold": 0.0}, ConfigError),
        ({"num_products": 0}, ConfigError),
        ({"splits": "paper"}, DataError),
        ({"data": "/nowhere"}, DataError),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception]) -> None:
    """They are refused when the environment is made."""
    with pytest.raises(error, match="expected"):
        WebShopEnv(**options)


def test_misuse(env: WebShopEnv, task: str) -> None:
    """Steps before a reset, and actions that are no text."""
    with pytest.raises(EnvError, match=r"before step\(\)"):
        env.step("search[mug]")
    env.reset(options={"task": task})
    with pytest.raises(EnvError, match="type str, got int"):
        env.step(3)  # type: ignore[arg-type]  # the misuse


def test_manifest_and_ceiling(env: WebShopEnv) -> None:
    """What belongs beside a result."""
    assert env.manifest()["splits"]["test"]["goals"] == len(env.tasks("test"))
    assert WebShopEnv(reward="value_match").ceiling("train") == 1.0
    assert 0.9 < env.ceiling("train") < 1.0


def test_index() -> None:
    """By tantivy it plays as well, and says beside its results that it is not Lucene-exact."""
    env = WebShopEnv(index="tantivy")
    assert (env.manifest()["index"], WebShopEnv().manifest()["index"]) == ("tantivy, not Lucene-exact", "Lucene-exact")
    assert buy(env, env.tasks("train")[0])[1] == 1.0


def test_what_no_action_can_say(tmp_path: Path) -> None:
    """Options without a text or with brackets are shown, but not offered: no action is read as a click on them."""
    values = [{"value": value} for value in ("", "a[b", "c]d", "e\nf", "Plain", "search")]
    row = {
        **{"asin": "B000000001", "name": "Mug", "full_description": "", "small_description": [], "pricing": "$5"},
        **{"category": "c", "query": "q", "product_category": "p", "customization_options": {"Size": values}},
    }
    told = {"instruction_attributes": ["red"], "attributes": []}
    rows = [{**row, "asin": f"B{number:09d}"} for number in range(5)]
    (tmp_path / "items_shuffle.json").write_text(json.dumps(rows))
    (tmp_path / "items_ins_v2.json").write_text(
        json.dumps({one["asin"]: {**told, "instruction": f"Find me {one['asin']}"} for one in rows})
    )
    (tmp_path / "title_nouns.json").write_text(json.dumps({one["asin"]: ["mug"] for one in rows}))
    env = WebShopEnv(data=str(tmp_path))
    env.reset(options={"task": env.tasks("test")[0]})
    env.step("search[mug]")
    offered = env.step("click[b000000001]")[4]["admissible_actions"]
    assert [action for action in offered if action[6:-1] in {value["value"].lower() for value in values}] == [
        "click[c]d]",
        "click[plain]",
    ]


def test_unpronounceable_options_are_not_offered(folder: Path) -> None:
    """On WebShop's products every offered action is understood."""
    env = WebShopEnv(data=str(folder))
    env.reset(options={"task": env.tasks("test")[0]})
    _, _, _, _, info = env.step("search[women's dress]")
    for action in info["admissible_actions"]:
        snapshot = env.snapshot()
        assert env.step(action)[4]["invalid_action"] is False
        env.restore(snapshot)


def test_goals_are_told_without_an_episode() -> None:
    """The goal of a task stands in its opening; one that does not exist is refused."""
    env = WebShopEnv()
    for task in env.tasks("train")[:3]:
        told = env.goal(task)
        assert told in env.reset(options={"task": task})[0]
    with pytest.raises(UnknownNameError, match="got 'nothing'"):
        env.goal("nothing")
