from ottla.groups.deadlines import Deadlines, Phase


def test_due_deadlines_are_returned_one_by_one_the_earliest_first() -> None:
    deadlines = Deadlines()
    deadlines.set("later", 0, 20)
    deadlines.set(Phase.JOIN, 0, 10)
    deadlines.set("not yet", 0, 30)
    assert deadlines.next_ms() == 10
    assert [deadlines.pop_due(25), deadlines.pop_due(25), deadlines.pop_due(25)] == [Phase.JOIN, "later", None]
    assert deadlines.next_ms() == 30


def test_each_key_has_at_most_one_deadline() -> None:
    deadlines = Deadlines()
    deadlines.set("one", 0, 10)
    deadlines.set("one", 5, 10)
    assert deadlines.pop_due(14) is None
    deadlines.cancel("one")
    deadlines.cancel("one")
    assert deadlines.next_ms() is None
    assert deadlines.pop_due(100) is None


def test_a_deadline_is_always_in_the_future() -> None:
    deadlines = Deadlines()
    deadlines.set("at once", 5, 0)
    deadlines.set("earlier", 5, -3)
    assert deadlines.pop_due(5) is None
    assert deadlines.next_ms() == 6
    deadlines.clear()
    assert deadlines.next_ms() is None
