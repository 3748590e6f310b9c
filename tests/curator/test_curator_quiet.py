"""User code beside rows is not heard before the run has ended: the guarantees of
core/quiet.py."""

from __future__ import annotations

import ctypes
import io
import logging
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.core.quiet import Troubles, quietly
from fairveil.curator import (
    AttachedHistogram,
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    MixtureHistogram,
    NumberMoments,
    PredictionHistogram,
    RowFunction,
    Rows,
    Score,
    ScoreHistogram,
)
from fairveil.errors import PrivacyError, WorseThanBaseline
from fairveil.privacy import NoiseSource, Promise

WIDE = Promise(1000.0, 1e-6)
SECRET = -77.0  # a number that one private row holds
LIBRARY = ctypes.CDLL(None)


def _in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def _dies():
    raise ValueError("of a thread")


class _Last:
    def __del__(self):
        raise KeyError("of a finalizer")


def _seterr(mode):
    def speak():
        with np.errstate(all=mode):
            np.log(np.zeros(2))

    return speak


def _os_system():
    subprocess.run(["echo", "of a program"], check=True)


VOICES = {
    "numpy": lambda: np.log(np.zeros(2)),
    "numpy prints": _seterr("print"),
    "warning": lambda: warnings.warn("secret", stacklevel=1),
    "deprecation": lambda: warnings.warn("secret", DeprecationWarning, stacklevel=1),
    "warned once": lambda: warnings.warn("secret", RuntimeWarning, stacklevel=2),
    "print": lambda: print("secret"),
    "half a line": lambda: print("secret", end=""),
    "standard error": lambda: sys.stderr.write("secret\n"),
    "lines": lambda: sys.stdout.writelines(["secret\n", "and more"]),
    "original stream": lambda: print("secret", file=sys.__stderr__),
    "bytes": lambda: (sys.__stdout__.buffer.write(b"secret\n"), None),
    "descriptor 1": lambda: os.write(1, b"secret\n"),
    "descriptor 2": lambda: os.write(2, b"secret\n"),
    "compiled code": lambda: LIBRARY.puts(b"secret"),
    "another program": _os_system,
    "log": lambda: logging.getLogger("a.b").warning("secret %s", 1),
    "root log": lambda: logging.error("secret"),
    "log of a handler": lambda: logging.getLogger("kept").error("secret"),
    "thread": lambda: _in_a_thread(lambda: print("secret")),
    "thread warns": lambda: _in_a_thread(lambda: warnings.warn("secret", stacklevel=1)),
    "thread dies": lambda: _in_a_thread(_dies),
    "finalizer": lambda: str(_Last()),
}


def _rows(secret):
    rng = np.random.default_rng(0)
    X = rng.random((40, 2)) + 0.1
    X[7, 0] = SECRET if secret else X[7, 0]
    return Rows.from_arrays(X, rng.integers(0, 2, 40), [rng.choice(["a", "b"], 40)])


def _row_function(speak, secret, threads=None):
    def function(block):
        if (block.numbers == SECRET).any():
            speak()
        return np.ones((block.rows, 1))

    curator = Curator(_rows(secret), WIDE, noise=NoiseSource.seeded(0), threads=threads)
    curator.answer([(RowFunction(function, 1, 1.0), 50.0)])
    return curator


def _row_function_in_threads(speak, secret):
    return _row_function(speak, secret, threads=3)


def _attached(speak, secret):
    def model(block):
        if (block.numbers == SECRET).any():
            speak()
        return np.zeros(block.rows, np.int64)

    curator = Curator(_rows(secret), WIDE, noise=NoiseSource.seeded(0))
    curator.answer([(AttachedHistogram(curator.attach(model), curator.cells()), 50.0)])
    return curator


def _score(speak, secret):
    rows = _rows(secret)
    candidates = Linear(np.array([[[0.5, -1.0, 0.0]], [[0.0, 1.0, 0.0]]]))

    def function(sums):
        if secret and sums.sum() > 0:
            speak()
        return sums.sum(axis=(1, 2, 3)) * 0.0

    curator = Curator(rows, WIDE, noise=NoiseSource.seeded(0))
    curator.choose(
        PredictionHistogram(candidates, curator.cells(), by_label=True),
        1.0,
        score=Score(function, 0.0, 1.0),
    )
    return curator


def _network(speak, secret):
    torch = pytest.importorskip("torch")
    from fairveil.curator import Network, NetworkGradient
    from fairveil.models import Skeleton

    class Loud(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x):
            if bool((x == SECRET).any()):
                speak()
            return self.inner(x)

    skeleton = Skeleton.of(Loud(), 2, 2)
    curator = Curator(_rows(secret), WIDE, noise=NoiseSource.seeded(0))
    curator.answer([(NetworkGradient(Network(skeleton, skeleton.start), clip=1.0), 50.0)])
    return curator


class _Foreign:
    """A classifier made elsewhere."""

    classes_ = np.array([0, 1])

    def __init__(self, speak):
        self.speak = speak

    def predict(self, X):
        if (np.asarray(X) == SECRET).any():
            self.speak()
        return np.asarray(X[:, 0] > 0.5, np.int64)


def _people(secret):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    X[7, 0] = SECRET if secret else X[7, 0]
    return X, rng.integers(0, 2, 60), np.where(rng.random(60) < 0.5, "a", "b")


def _base(speak, secret):
    X, y, A = _people(secret)
    clf = fv.FairPostProcessor(
        _Foreign(speak), public_base=True, constraints="demographic_parity:0.2", epsilon=5.0
    )
    ways.told(clf, random_state=0, public_rows=60, delta=1e-4).fit(X, y, sensitive_features=A)


def _candidates(speak, secret):
    X, y, A = _people(secret)
    listed = [_Foreign(speak), _Foreign(print)]
    clf = ways.game(
        "demographic_parity:0.5", oracle="exponential", solver=fv.OracleGame(candidates=listed)
    )
    ways.told(clf, random_state=0, solver__rounds=2, public_rows=60, epsilon=5.0, delta=1e-4).fit(
        X, y, sensitive_features=A
    )


KINDS = {
    "row function": _row_function,
    "in threads": _row_function_in_threads,
    "attached model": _attached,
    "score": _score,
    "network": _network,
    "base classifier": _base,
    "candidates": _candidates,
}


class _Ears(logging.Handler):
    """All that could be heard of a run."""

    def __init__(self, capfd, monkeypatch):
        super().__init__()
        self.capfd, self.heard = capfd, []
        monkeypatch.setattr(
            sys, "unraisablehook", lambda args: self.heard.append(str(args.exc_value))
        )
        monkeypatch.setattr(
            threading, "excepthook", lambda args: self.heard.append(str(args.exc_value))
        )

    def emit(self, record):
        self.heard.append(record.getMessage())

    def of(self, run, *arguments, action="always"):
        self.heard.clear()
        self.capfd.readouterr()
        kept, before = logging.StreamHandler(sys.stderr), warnings.filters[:]
        logging.getLogger().addHandler(self)
        logging.getLogger("kept").addHandler(kept)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(action)
                result = run(*arguments)
        finally:
            logging.getLogger().removeHandler(self)
            logging.getLogger("kept").removeHandler(kept)
        assert warnings.filters == before
        LIBRARY.fflush(None)
        out = self.capfd.readouterr()
        # Of what it released a fit may speak.
        said = [
            str(one.message) for one in caught if not issubclass(one.category, WorseThanBaseline)
        ]
        return result, (out.out, out.err, list(self.heard), said)


@pytest.fixture
def ears(capfd, monkeypatch):
    return _Ears(capfd, monkeypatch)


@pytest.mark.parametrize("voice", VOICES)
def test_each_voice_is_heard_where_nobody_masks_it(ears, voice):
    """The tests below can fail."""
    _, heard = ears.of(VOICES[voice])
    assert any(heard)


@pytest.mark.parametrize("voice", VOICES)
def test_guarantee_1_no_voice_is_heard_and_all_are_told(ears, voice):
    curator, nothing = ears.of(_row_function, VOICES[voice], False)
    assert nothing == ("", "", [], [])
    curator.close()
    assert curator.trouble() == ()
    curator, heard = ears.of(_row_function, VOICES[voice], True)
    assert heard == nothing
    with pytest.raises(PrivacyError, match="a run that has ended"):
        curator.trouble()
    curator.close()
    assert len(curator.trouble()) in (1, 2)
    assert any(word in curator.trouble()[0] for word in ("secret", "divide by zero", "of a "))


LOUDEST = ("numpy", "print", "descriptor 1", "log")


@pytest.mark.parametrize("kind", KINDS)
def test_guarantee_1_of_every_kind_of_user_code(ears, kind):
    for voice in LOUDEST:
        _, nothing = ears.of(KINDS[kind], VOICES[voice], False)
        curator, heard = ears.of(KINDS[kind], VOICES[voice], True)
        assert heard == nothing, voice
        if curator is not None:
            curator.close()
            assert curator.trouble(), voice


def test_guarantee_1_each_sentence_once_and_a_hundred_at_most():
    numbers = iter(range(10_000))
    curator = _row_function(
        lambda: [print("again"), *(print(next(numbers)) for _ in range(80))], True
    )
    question = RowFunction(
        lambda block: [print("again"), *(print(next(numbers)) for _ in range(80))], 1, 1.0
    )
    curator.answer([(question, 50.0)])
    curator.close()
    told = curator.trouble()
    assert len(told) == len(set(told)) == 100
    assert told[0] == "printed: again"


def test_guarantee_1_a_log_whose_words_do_not_fit_is_told_too():
    troubles = Troubles()
    quietly(troubles, logging.getLogger("a").error, "secret %d", "x")
    assert list(troubles) == ["logged: ERROR a: secret %d"]


@pytest.mark.parametrize("action", ["error", "ignore", "once", "default"])
@pytest.mark.parametrize("kind", ["row function", "network"])
def test_guarantee_2_filters_change_nothing(ears, kind, action):
    """As errors, warnings would cost the rows that warn their contribution."""
    speak = VOICES["numpy"]
    curator, heard = ears.of(KINDS[kind], speak, True, action=action)
    assert heard == ("", "", [], [])
    curator.close()
    assert curator.trouble() == ("RuntimeWarning: divide by zero encountered in log",)


@pytest.mark.parametrize("mode", ["raise", "ignore", "print", "call", "log"])
def test_guarantee_2_the_callers_seterr_changes_nothing(ears, mode):
    def run():
        with np.errstate(all=mode, call=lambda *_: print("called")):
            return _row_function(VOICES["numpy"], True)

    curator, heard = ears.of(run)
    assert heard == ("", "", [], [])
    curator.close()
    assert curator.trouble() == ("RuntimeWarning: divide by zero encountered in log",)


def test_guarantee_2_code_may_ask_for_errors_itself():
    def careful():
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            try:
                np.log(np.zeros(1))
            except RuntimeWarning:
                return "caught"

    troubles = Troubles()
    assert quietly(troubles, careful) == "caught"
    assert not list(troubles)


@pytest.mark.parametrize("action", ["default", "module", "once"])
def test_guarantee_2_a_later_warning_of_the_same_place_is_still_seen(action):
    def place():
        warnings.warn("the same", stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        quietly(Troubles(), place)
        assert not caught
        place()
        assert len(caught) == 1
        place()
        assert len(caught) == 1
    warnings.onceregistry.clear()


def test_guarantee_2_what_was_seen_before_is_told_all_the_same():
    def place():
        warnings.warn("the same", stacklevel=1)

    troubles = Troubles()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        place()
        quietly(troubles, place)
    assert list(troubles) == ["UserWarning: the same"]


def _state():
    streams = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    hooks = [
        warnings._showwarnmsg,
        logging.Logger.handle,
        sys.unraisablehook,
        threading.excepthook,
    ]
    places = [os.fstat(number).st_ino for number in (1, 2)]
    return (
        streams,
        ["write" in vars(one) for one in streams],
        hooks,
        warnings.filters[:],
        places,
        np.geterr(),
    )


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_guarantee_3_all_is_as_it_was_after_an_error(capfd, error):
    def fails():
        print("secret")
        np.seterr(all="raise")
        raise error

    before = _state()
    with pytest.raises(error):
        quietly(Troubles(), fails)
    assert _state() == before
    assert capfd.readouterr() == ("", "")


def test_guarantee_3_two_threads_at_once(capfd):
    """The first opens what the last closes; what a third says meanwhile is nobody's to hear."""
    begun, end, before = threading.Event(), threading.Event(), _state()

    def wait():
        begun.set()
        assert end.wait(60)

    thread = threading.Thread(target=lambda: quietly(Troubles(), wait))
    thread.start()
    assert begun.wait(60)
    quietly(Troubles(), print, "secret")
    os.write(1, b"secret too")
    end.set()
    thread.join()
    assert _state() == before
    assert capfd.readouterr() == ("", "")


def test_guarantee_3_nested(capfd):
    outer, inner = Troubles(), Troubles()

    def around():
        print("around")
        quietly(inner, print, "within")
        print("around again")

    quietly(outer, around)
    assert (list(outer), list(inner)) == (
        ["printed: around", "printed: around again"],
        ["printed: within"],
    )
    assert capfd.readouterr() == ("", "")


def test_guarantee_3_streams_of_any_kind(monkeypatch):
    class Slotted:
        __slots__ = ("text",)

        def __init__(self):
            self.text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    for stream in (io.StringIO(), Slotted(), None):
        monkeypatch.setattr(sys, "stdout", stream)
        troubles = Troubles()
        quietly(troubles, print, "secret")
        assert sys.stdout is stream
        print("heard")
        assert stream is None or getattr(stream, "text", "") + (
            stream.getvalue() if hasattr(stream, "getvalue") else ""
        ) == ("heard\n")
        assert stream is None or list(troubles) == ["printed: secret"]


def test_no_row_makes_the_librarys_own_arithmetic_warn(ears):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    far = X.copy()
    far[:3] = [[1.7e308, -1.7e308, 1.7e308], [5e-324, 0.0, -5e-324], [1e200, 1e-200, 1e155]]
    y, A = rng.integers(0, 2, 300), rng.choice(["a", "b"], 300)
    model = Linear(rng.normal(size=(2, 1, 4)) * 1e300)
    one = Linear(rng.normal(size=(1, 4)) * 1e10)

    def run(numbers, threads):
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            curator = Curator(
                Rows.from_arrays(numbers, y, [A]),
                WIDE,
                noise=NoiseSource.seeded(0),
                threads=threads,
            )
            cells = curator.cells()
            attached = curator.attach(
                lambda block: np.eye(2)[block.labels] * block.numbers[0][:, np.newaxis]
            )
            scores = ScoreHistogram(model, (-1.0, 1.0), cells, by_label=True)
            measurements = [CellCounts(cells), PredictionHistogram(one, cells), GradientSum(one, 1.0), FeatureSums(cells, 1.0),
                    GramMatrices(cells, 1.0), NumberMoments(1.0), GroupLosses(one, cells), scores,
                    AttachedHistogram(attached, cells),
                    MixtureHistogram(model.array[:1], (1.0,), cells),
                    RowFunction(lambda block: block.numbers.T, 3, 1.0)]  # fmt: skip
            for measurement in measurements:
                curator.answer([(measurement, 50.0)])
            curator.choose(scores, 1.0, costs=np.ones((2, 2, 2)))
            curator.rescale([1e300] * 3, [1e300] * 3)
            curator.answer([(NumberMoments(1.0), 50.0)])
        return curator

    for threads in (1, 3):
        assert ears.of(run, far, threads)[1] == ears.of(run, X, threads)[1] == ("", "", [], [])
