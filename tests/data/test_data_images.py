"""Images: digits as bytes, faces from a folder, and tints with known truth. All images but MNIST's
are made here."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil import data
from fairveil.data import faces
from fairveil.data.synthetic import Tints
from fairveil.errors import DataNotFoundError, InputError

Image = pytest.importorskip("PIL.Image")
STAMP = "20170116174525125"


def jpeg(
    colour: tuple[int, int, int] | int = (200, 30, 60), size: tuple[int, int] = (20, 10)
) -> bytes:
    out = io.BytesIO()
    Image.new("RGB" if isinstance(colour, tuple) else "L", size, colour).save(
        out, "JPEG", quality=95
    )
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    here = tmp_path / "faces"
    here.mkdir()
    (here / f"9_1_4_{STAMP}.jpg").write_bytes(jpeg((10, 200, 90)))
    (here / f"26_0_2_{STAMP}.jpg.chip.jpg").write_bytes(jpeg((250, 0, 0), (64, 64)))
    (here / f"116_1_0_{STAMP}.JPG").write_bytes(jpeg(128))
    return here


# Digits


def test_digits_are_the_pixels_of_the_named_set(data_folder: Path) -> None:
    digits, table = data.mnist_images(data_folder), data.get("mnist", data_folder)
    assert digits.pixels.shape == (70_000, 28, 28)
    assert (digits.pixels.dtype, digits.pixels.flags["C_CONTIGUOUS"]) == (np.uint8, True)
    assert digits.training_rows == 60_000
    assert digits.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert digits.where == f"path: {data_folder}"
    for at in (0, 27, 406, 783):
        assert np.array_equal(digits.pixels[:, at // 28, at % 28], table.table[f"pixel{at}"])
    # A digit is written in the middle: its mean is brighter there than on the edge.
    mean = digits.pixels.mean(axis=0)
    assert mean[10:18, 10:18].min() > 20 > mean[[0, -1]].max()


def test_digits_are_looked_for_like_every_named_set(nowhere: Path) -> None:
    with pytest.raises(DataNotFoundError, match="train-images-idx3-ubyte"):
        data.mnist_images(nowhere)


def test_floats_are_the_bytes_over_255() -> None:
    grey = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    floats = data.as_floats(grey)
    assert (floats.shape, floats.dtype) == ((1, 1, 16, 16), np.float32)
    assert np.array_equal(floats.ravel(), np.arange(256, dtype=np.float32) / np.float32(255))
    colour = np.stack([grey, grey], axis=1)
    assert data.as_floats(colour).shape == (1, 2, 16, 16)
    for wrong in (grey.astype(float), grey[0], np.zeros((1, 1, 1, 1, 1), np.uint8)):
        with pytest.raises(InputError, match=r"images: expected uint8 of shape"):
            data.as_floats(wrong)


# Faces


def test_names_say_age_gender_and_race_and_give_the_order(folder: Path) -> None:
    found = data.load_utkface(folder, size=8)
    assert found.names == (
        f"116_1_0_{STAMP}.JPG",
        f"26_0_2_{STAMP}.jpg.chip.jpg",
        f"9_1_4_{STAMP}.jpg",
    )
    assert found.ages.tolist() == [116, 26, 9]
    assert found.genders.tolist() == [1, 0, 1]
    assert [faces.RACES[race] for race in found.races] == ["White", "Asian", "Other"]
    assert found.age_groups.tolist() == [8, 3, 1]
    assert found.age_edges == faces.AGE_EDGES
    assert found.skipped == ()
    assert found.report() == "3 faces read, 0 files left out."


def test_images_are_resized_colour_in_planes(folder: Path) -> None:
    found = data.load_utkface(folder, size=8)
    assert (found.pixels.shape, found.pixels.dtype) == ((3, 3, 8, 8), np.uint8)
    for plane, colour in zip(found.pixels, [(128,) * 3, (250, 0, 0), (10, 200, 90)], strict=True):
        # what JPEG loses
        assert np.abs(plane.reshape(3, -1).astype(int) - np.reshape(colour, (3, 1))).max() <= 6
    assert data.as_floats(found.pixels).shape == (3, 3, 8, 8)


def test_height_is_the_second_axis(tmp_path: Path) -> None:
    rows = np.zeros((32, 32, 3), np.uint8)
    rows[:16] = 255  # bright above
    Image.fromarray(rows).save(tmp_path / f"1_0_0_{STAMP}.jpg", quality=95)
    pixels = data.load_utkface(tmp_path, size=16).pixels[0]
    assert pixels[:, :7].min() > 200
    assert pixels[:, 9:].max() < 50


def test_every_age_is_in_one_of_nine_groups(tmp_path: Path) -> None:
    for age in (0, 2, 3, 9, 10, 19, 20, 69, 70, 116):
        (tmp_path / f"{age}_0_0_{STAMP}.jpg").write_bytes(jpeg(size=(4, 4)))
    found = data.load_utkface(tmp_path, size=4)
    by_age = dict(zip(found.ages.tolist(), found.age_groups.tolist(), strict=True))
    assert by_age == {0: 0, 2: 0, 3: 1, 9: 1, 10: 2, 19: 2, 20: 3, 69: 7, 70: 8, 116: 8}
    own = data.load_utkface(tmp_path, size=4, age_edges=[18])
    assert dict(zip(own.ages.tolist(), own.age_groups.tolist(), strict=True))[19] == 1
    assert own.age_groups.sum() == 5


MALFORMED = [
    f"39_1_{STAMP}.jpg.chip.jpg",  # no race, as three files of the published folder
    f"39_1_5_{STAMP}.jpg",  # no such race
    f"39_2_0_{STAMP}.jpg",  # no such gender
    f"117_0_0_{STAMP}.jpg",  # older than anybody
    f"-1_0_0_{STAMP}.jpg",
    f"39_1_0_{STAMP}.png",
    f"٣_1_0_{STAMP}.jpg",  # a digit, but not one of ASCII
    "39_1_0_.jpg",
    "readme.txt",
]


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_name_is_an_error_or_left_out(name: str, folder: Path) -> None:
    (folder / name).write_bytes(jpeg())
    with pytest.raises(
        InputError, match=r"load_utkface: expected files that all are faces"
    ) as caught:
        data.load_utkface(folder)
    assert name in str(caught.value)
    assert "on_error='skip'" in str(caught.value)
    found = data.load_utkface(folder, on_error="skip")
    assert found.size == 3
    assert [one.name for one in found.skipped] == [name]
    assert f"3 faces read, 1 files left out.\n{name}: its name is not" in found.report()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no image",
        jpeg()[:200],
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
    ],
)
def test_an_unreadable_image_is_named(content: bytes, folder: Path) -> None:
    name = f"40_0_0_{STAMP}.jpg"
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: it cannot be read"):
        data.load_utkface(folder)
    found = data.load_utkface(folder, size=8, on_error="skip")
    assert [one.name for one in found.skipped] == [name]
    # What was left out leaves no hole and no trace: the others' pixels are theirs.
    assert found.names[-1].startswith("9_1_4")
    assert np.abs(found.pixels[-1][1].astype(int) - 200).max() <= 6
    assert len(found.pixels) == len(found.ages) == found.size == 3


def test_an_image_too_large_to_be_a_face_is_not_decoded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / f"1_0_0_{STAMP}.jpg").write_bytes(jpeg(size=(10, 10)))
    # 20 x 10 exceeds it, by less than twice: Pillow would only warn
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 150)
    found = data.load_utkface(folder, on_error="skip")
    assert found.ages.tolist() == [1]
    assert all("exceeds limit" in one.why for one in found.skipped)


def test_links_out_are_never_followed_and_links_inside_are(folder: Path) -> None:
    secret = folder.parent / f"50_0_0_{STAMP}.jpg"
    secret.write_bytes(jpeg())
    (folder / f"50_0_0_{STAMP}.jpg").symlink_to(secret)
    (folder / f"51_0_0_{STAMP}.jpg").symlink_to(folder / f"9_1_4_{STAMP}.jpg")
    (folder / f"52_0_0_{STAMP}.jpg").symlink_to(folder / "nothing")
    (folder / f"53_0_0_{STAMP}.jpg").symlink_to(folder.parent)
    with pytest.raises(InputError, match="leads out of the folder"):
        data.load_utkface(folder)
    found = data.load_utkface(folder, on_error="skip")
    assert sorted(found.ages.tolist()) == [9, 26, 51, 116]
    assert [(one.name[:2], one.why.split(" that ")[-1]) for one in found.skipped] == [
        ("50", "leads out of the folder"),
        ("52", "leads nowhere"),
        ("53", "leads out of the folder"),
    ]


def test_subfolders_and_hidden_files_are_passed_over(folder: Path) -> None:
    (folder / "part2").mkdir()
    (folder / "part2" / f"50_0_0_{STAMP}.jpg").write_bytes(jpeg())
    (folder / ".DS_Store").write_bytes(b"?")
    assert data.load_utkface(folder).size == 3


def test_many_faults_are_counted_and_a_few_named(folder: Path) -> None:
    for at in range(9):
        (folder / f"wrong{at}.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"wrong0.jpg.*wrong4.jpg: [^;]*; and 4 more") as caught:
        data.load_utkface(folder)
    assert "wrong5" not in str(caught.value)


def test_nothing_to_read_says_so(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match=r"expected images of faces, got '0 files"):
        data.load_utkface(tmp_path / "empty")
    with pytest.raises(DataNotFoundError, match="nothing there"):
        data.load_utkface(tmp_path / "elsewhere")
    with pytest.raises(DataNotFoundError, match="a file"):
        data.load_utkface(folder / f"9_1_4_{STAMP}.jpg")


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"on_error": "ignore"},
        {"age_edges": ()},
        {"age_edges": (5, 5)},
        {"age_edges": (0, 5)},
        {"age_edges": (5.5,)},
    ],
)
def test_impossible_arguments_are_refused(wrong: dict[str, Any], folder: Path) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        data.load_utkface(folder, **wrong)


def test_without_pillow_the_error_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "PIL" else found(name, *rest),
    )
    with pytest.raises(InputError, match=r"pip install 'fairveil\[images\]'"):
        data.load_utkface(folder)


# Tints. Each comparison of a share allows 5 standard errors: a false alarm in 1.7 million cells.


@pytest.mark.parametrize(
    "options",
    [{}, {"strength": 0.0}, {"strength": 1.0}, {"classes": 7, "groups": 3, "strength": 0.3}],
)
def test_groups_are_drawn_as_stated(options: dict[str, Any]) -> None:
    tints = Tints(**options)
    rows = 100_000
    shares = np.arange(1, tints.classes + 1) / np.arange(1, tints.classes + 1).sum()
    labels = np.random.default_rng(0).choice(tints.classes, rows, p=shares)
    _, groups = tints.plant(np.zeros((rows, 1, 1), np.uint8), labels, 1)
    assert np.allclose(tints.chances.sum(axis=1), 1)
    for of_class in range(tints.classes):
        mine = groups[labels == of_class]
        chances = tints.chances[of_class]
        found = np.bincount(mine, minlength=tints.groups) / len(mine)
        assert np.all(np.abs(found - chances) <= 5 * np.sqrt(chances * (1 - chances) / len(mine)))
    rates = tints.label_rates(shares)
    for group in range(tints.groups):
        mine = labels[groups == group]
        found = np.bincount(mine, minlength=tints.classes) / len(mine)
        assert np.all(
            np.abs(found - rates[group])
            <= 5 * np.sqrt(rates[group] * (1 - rates[group]) / len(mine))
        )


def test_the_gap_of_a_classifier_without_error_is_the_stated_one() -> None:
    assert Tints(strength=0.4).label_gap() == pytest.approx(0.2)
    assert Tints(strength=0.0).label_gap(np.arange(1, 11)) == pytest.approx(0.0)
    assert Tints(classes=5, strength=1.0).label_gap() == pytest.approx(1.0)
    lacking = Tints(classes=2, groups=3, strength=1.0)  # nobody is in the third group
    assert np.isnan(lacking.label_rates()[2]).all()
    assert lacking.label_gap() == pytest.approx(1.0)


def test_strokes_are_tinted_and_the_background_is_not() -> None:
    grey = np.zeros((50, 4, 4), np.uint8)
    grey[:, 1, 1], grey[:, 2, 2] = 255, 51
    labels = np.arange(50) % 10
    images, groups = Tints().plant(grey, labels, 3)
    assert (images.shape, images.dtype) == ((50, 3, 4, 4), np.float32)
    colours = Tints().colours
    assert np.allclose(images[:, :, 1, 1], colours[groups], atol=1e-6)
    assert np.allclose(images[:, :, 2, 2], 0.2 * colours[groups], atol=1e-6)
    assert images[:, :, 0].max() == 0
    apart = np.linalg.norm(colours[:, np.newaxis] - colours, axis=-1)[~np.eye(5, dtype=bool)]
    assert apart.min() > 0.4
    assert np.allclose(colours.max(axis=1), 1)


def test_noise_keeps_groups_colours_and_range() -> None:
    rng = np.random.default_rng(0)
    grey, labels = rng.integers(256, size=(400, 8, 8)).astype(np.uint8), rng.integers(10, size=400)
    plain, groups = Tints().plant(grey, labels, 5)
    noisy, again = Tints(noise=0.3).plant(grey, labels, 5)
    assert np.array_equal(groups, again)
    assert 0 <= noisy.min() < noisy.max() <= 1
    brightness = noisy.max(axis=1)
    colours = Tints().colours[groups]
    assert np.allclose(
        noisy, brightness[:, np.newaxis] * colours[:, :, np.newaxis, np.newaxis], atol=1e-6
    )
    moved = (brightness - plain.max(axis=1))[np.abs(plain.max(axis=1) - 0.5) < 0.05]
    # 2,500 pixels or so, cut at 1.5 standard deviations: a deviation 1.5 times off is 10 standard
    # errors away.
    cut = np.clip(np.random.default_rng(1).normal(0.0, 0.3, 100_000), -0.5, 0.5).std()
    assert len(moved) > 2_000
    assert abs(moved.std() / cut - 1) < 0.1
    once, _ = Tints(noise=0.3).plant(grey, labels, 5)
    assert np.array_equal(once, noisy)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tints(classes=1),
        lambda: Tints(groups=1),
        lambda: Tints(strength=1.1),
        lambda: Tints(noise=-1.0),
        lambda: Tints().label_rates([1.0, 2.0]),
        lambda: Tints().plant(np.zeros((2, 4, 4)), [0, 1], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0, 10], 0),
        lambda: Tints().plant(np.zeros((2, 4, 4), np.uint8), [0.0, 1.0], 0),
        lambda: Tints().plant(np.zeros((2, 3, 4, 4), np.uint8), [0, 1], 0),
    ],
)
def test_impossible_tints_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match=r"expected .*, got "):
        make()
