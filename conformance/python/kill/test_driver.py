"""The whole driver on a real server, once as it is and once with a disk that forgets."""

import shutil

import pytest

from kill.__main__ import Driver
from kill.tables import TABLE


@pytest.fixture
def driver(tmp_path):
    driver = Driver(tmp_path, seed=5, clients=["raw", "http", "table"])
    yield driver
    driver.close()


def rounds(driver):
    """Rounds until all has happened that should: one may be too short for a split or a procedure, many are not."""
    assert "no stored procedure was acknowledged" in driver.thin()
    violations = []
    for number in range(1, 21):
        violations += driver.round(number)
        if violations or not driver.thin():
            break
    assert violations == []
    assert driver.thin() == []


def test_a_server_that_keeps_its_word_passes(driver):
    rounds(driver)
    assert driver.done > 0 and len(driver.judge.state) > 0
    assert any(container == TABLE for container, _, _ in driver.judge.state)
    assert 0 < driver.killed_in_calls() <= driver.killed_workers


def test_partitions_split_between_and_during_kills(tmp_path):
    driver = Driver(tmp_path, seed=5, clients=["raw", "raw"], splits=True)
    try:
        rounds(driver)
        assert driver.split_count() > 0
    finally:
        driver.close()


def test_a_disk_that_forgets_is_found(driver, tmp_path):
    """The folder as it was before the round stands in for a server that answered before it wrote."""
    assert driver.round(1) == []
    driver.server.kill()
    shutil.copytree(tmp_path / "data", tmp_path / "old")
    driver.server.start()

    def forget():
        shutil.rmtree(tmp_path / "data")
        shutil.move(tmp_path / "old", tmp_path / "data")

    # A round may be cut off before anything was written, but not many in a row are.
    done = driver.done
    violations = driver.round(2, before_restart=forget)
    assert driver.done > done
    assert any(violation.startswith("lost") for violation in violations), violations
    assert any(violation.startswith("session") for violation in violations), violations
