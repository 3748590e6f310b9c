"""Public benchmark sets by name, for benchmarks and examples: files that you hold, checked, coded by
facts that are public. Nothing is downloaded.

Bounds and lists come from each set's public documentation or, where that gives none, are round
numbers that are plausible for what is measured; none was read from the rows. A value beyond a bound
is clipped.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairveil import data
from fairveil.data import Boolean, Category, Ignored, Number, Schema
from fairveil.errors import ChecksumError, DataNotFoundError

WORK = (
    "Private",
    "Self-emp-not-inc",
    "Self-emp-inc",
    "Federal-gov",
    "Local-gov",
    "State-gov",
    "Without-pay",
)
EDUCATION = (
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th", "12th",
    "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
)  # fmt: skip
MARITAL = (
    "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
)  # fmt: skip
OCCUPATION = (
    "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty", "Handlers-cleaners",
    "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
    "Armed-Forces",
)  # fmt: skip
RELATIONSHIP = ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")
RACE = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
COUNTRY = (
    "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)", "India",
    "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica",
    "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan", "Haiti",
    "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia", "El-Salvador",
    "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
)  # fmt: skip

ADULT = Schema(
    {
        "age": Number(17, 90),
        "fnlwgt": Number(0, 1_500_000),
        "education-num": Number(1, 16),
        "capital-gain": Number(0, 99_999),
        "capital-loss": Number(0, 5_000),
        "hours-per-week": Number(1, 99),
        "workclass": Category(WORK),
        "education": Category(EDUCATION),
        "marital-status": Category(MARITAL),
        "occupation": Category(OCCUPATION),
        "relationship": Category(RELATIONSHIP),
        "race": Category(RACE),
        "native-country": Category(COUNTRY),
        "sex": Category(("Female", "Male")),
        "income": Category(("<=50K", ">50K")),
    },
    target="income",
    sensitive=("sex",),
    rows=45_000,
    name="adult",
    source=(
        "adult.names of UCI data set 2 (lists; people older than 16), the Current Population "
        "Survey's top codes (age "
        "90, gain 99999, hours 99); weights and losses: plausible round bounds. Never-worked is "
        "not listed: such rows "
        "have no occupation."
    ),
)

_MONEY = {f"BILL_AMT{month}": Number(-100_000, 1_000_000) for month in range(1, 7)}
_PAID = {f"PAY_AMT{month}": Number(0, 500_000) for month in range(1, 7)}
CREDIT = Schema(
    {
        "ID": Ignored(),
        "LIMIT_BAL": Number(0, 1_000_000),
        "SEX": Category((1, 2)),
        "EDUCATION": Category((0, 1, 2, 3, 4, 5, 6)),
        "MARRIAGE": Category((0, 1, 2, 3)),
        "AGE": Number(18, 80),
        **{f"PAY_{month}": Number(-2, 9) for month in (0, 2, 3, 4, 5, 6)},
        **_MONEY,
        **_PAID,
        "Default": Category((0, 1)),
    },
    target="Default",
    sensitive=("SEX",),
    rows=30_000,
    name="credit",
    source=(
        "Description of UCI data set 350 (codes; months of delay up to 9; SEX 1 male, 2 female), "
        "the unlabelled codes "
        "that its users report (education 0, 5, 6; marriage 0; delay -2); amounts in New Taiwan "
        "dollars: plausible "
        "round bounds."
    ),
)

_VOICE: dict[str, Any] = {
    "Jitter(%)": Number(0, 0.1),
    "Jitter(Abs)": Number(0, 0.0005),
    "Jitter:RAP": Number(0, 0.06),
    "Jitter:PPQ5": Number(0, 0.07),
    "Jitter:DDP": Number(0, 0.2),
    "Shimmer": Number(0, 0.3),
    "Shimmer(dB)": Number(0, 2.5),
    "Shimmer:APQ3": Number(0, 0.2),
    "Shimmer:APQ5": Number(0, 0.2),
    "Shimmer:APQ11": Number(0, 0.3),
    "Shimmer:DDA": Number(0, 0.5),
    "NHR": Number(0, 1),
    "HNR": Number(0, 40),
    "RPDE": Number(0, 1),
    "DFA": Number(0.5, 1),
    "PPE": Number(0, 1),
}
PARKINSONS = Schema(
    {
        "subject#": Ignored(),
        "age": Number(30, 90),
        "sex": Category((0, 1)),
        "test_time": Number(-10, 220),
        "motor_UPDRS": Number(0, 108),
        "total_UPDRS": Ignored(),
        **_VOICE,
        "high_UPDRS": Boolean(),
    },
    target="high_UPDRS",
    sensitive=("sex",),
    rows=6_000,
    name="parkinsons",
    source=(
        "Description of UCI data set 189 (six months, sex 0 male, 1 female; UPDRS scales 0-108 and "
        "0-176); measures "
        "of voice: plausible round bounds. The label is total_UPDRS above 27.576, the published "
        "median; subject# and "
        "total_UPDRS are no features."
    ),
)

COMMUNITY_SHARES = tuple(
    """population householdsize racepctblack racePctWhite racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24
    agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc
    perCapInc whitePerCap blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov
    PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu
    PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par PctKids2Par
    PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig PctImmigRecent PctImmigRec5
    PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell
    PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous PctPersOwnOccup
    PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded PctVacMore6Mos
    MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ
    MedRent MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn
    PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps
    LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite
    PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea
    PopDens PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn
    PolicBudgPerPop""".split()  # noqa: SIM905  # a list of 122 quoted words would be harder to read
)
COMMUNITIES = Schema(
    {
        **{share: Number(0, 1) for share in COMMUNITY_SHARES},
        "racepctblack_high": Boolean(),
        "racePctWhite_high": Boolean(),
        "racePctHisp_high": Boolean(),
        "ViolentCrimesPerPop": Category((0, 1)),
    },
    target="ViolentCrimesPerPop",
    sensitive=("racepctblack_high",),
    rows=2_000,
    name="communities",
    source=(
        "Description of UCI data set 183 (every number is normalised to 0-1). Groups: a normalised "
        "racial share above "
        "0.5, a threshold chosen here; racePctWhite_high and racePctHisp_high are there to be "
        "named instead, and are "
        "features else."
    ),
)

LAW_SCHOOL = Schema(
    {
        "decile1b": Number(1, 10),
        "decile3": Number(1, 10),
        "lsat": Number(10, 48),
        "ugpa": Number(0, 4),
        "zfygpa": Number(-5, 5),
        "zgpa": Number(-5, 5),
        "fulltime": Category((1, 2)),
        "fam_inc": Number(1, 5),
        "male": Category((0, 1)),
        "tier": Category((1, 2, 3, 4, 5, 6)),
        "race": Category(("Non-White", "White")),
        "pass_bar": Category((0, 1)),
    },
    target="pass_bar",
    sensitive=("race",),
    rows=20_000,
    name="law_school",
    source=(
        "Wightman's LSAC study of 1998 (LSAT scale 10-48, deciles, grade points to 4, six tiers); "
        "standardised "
        "averages: plausible round bounds. For regression: named('law_school', target='zfygpa')."
    ),
)

YES_NO = Category((0, 1))
HEART = Schema(
    {
        "BMI": Number(10, 100),
        "Age": Number(1, 13),
        "Education": Number(1, 6),
        "Income": Number(1, 8),
        "GenHlth": Number(1, 5),
        "MentHlth": Number(0, 30),
        "PhysHlth": Number(0, 30),
        "Diabetes": Category((0, 1, 2)),
        **dict.fromkeys(
            """HighBP HighChol CholCheck Smoker Stroke PhysActivity Fruits Veggies HvyAlcoholConsump AnyHealthcare
            NoDocbcCost DiffWalk Sex HeartDiseaseorAttack""".split(),  # noqa: SIM905
            YES_NO,
        ),
    },
    target="HeartDiseaseorAttack",
    sensitive=("Sex",),
    rows=250_000,
    name="heart",
    source="The codebook of the CDC's BRFSS 2015, as its heart disease indicators were prepared.",
)
ACS = Schema(
    {
        "AGEP": Number(17, 99),
        "SCHL": Number(1, 24),
        "WKHP": Number(1, 99),
        "COW": Category(tuple(range(1, 10))),
        "MAR": Category(tuple(range(1, 6))),
        "RELP": Category(tuple(range(18))),
        "RAC1P": Category(tuple(range(1, 10))),
        "SEX": Category((1, 2)),
        "above": Boolean(),
    },
    target="above",
    sensitive=("SEX",),
    name="acs",
    source=(
        "The Census Bureau's data dictionary of the 2018 ACS microdata; filters and label (income "
        "above 50,000) are those of Ding et al. 2021. OCCP and POBP, of some 500 and 220 codes, are "
        "left out."
    ),
)
RETIRED = Schema(
    {
        **{
            column: kind
            for column, kind in ADULT.columns.items()
            if column not in ("fnlwgt", "sex", "income")
        },
        "gender": Category(("Female", "Male")),
        "above": Boolean(),
    },
    target="above",
    sensitive=("gender",),
    rows=50_000,
    name="retired-adult",
    source="Adult's lists; Ding et al. 2021 reconstructed the rows. The label: income above 50,000.",
)


@dataclass(frozen=True, eq=False)
class Named:
    """A set: its columns as arrays, and the schema that codes them."""

    schema: Schema
    table: Mapping[str, npt.NDArray[Any]]

    @cached_property
    def rows(self) -> data.EncodedRows:
        """The rows, coded."""
        return data.encode(self.table, self.schema)

    @property
    def size(self) -> int:
        """How many rows: these sets are public."""
        return len(next(iter(self.table.values())))


ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
STATES = {"alabama": "01", "california": "06", "new-york": "36", "texas": "48"}
"""Of the American Community Survey's files of persons, by their codes."""
RICH = 50_000
SHARES = ("racepctblack", "racePctWhite", "racePctHisp")
DERIVED = {"above", "high_UPDRS", *(f"{share}_high" for share in SHARES)}
"""Columns that no file has."""
MEDIAN_UPDRS = 27.576
"""The published threshold: the median of total_UPDRS over the 5,875 published recordings."""
HIGH_SHARE = 0.5
SETS: dict[str, tuple[Schema, dict[str, str]]] = {
    "adult": (
        ADULT,
        {
            "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
    ),
    "credit": (
        CREDIT,
        {"credit_default.csv": "36b56c4d0bc2ac0ff2a1e4a1f29ba91bd4cc94cc81cce1629e5750da08f59f7c"},
    ),
    "parkinsons": (
        PARKINSONS,
        {
            "parkinsons_updrs.csv": "cacdc7007846c68ca852cb3dbb43b1f68b7a9edefa2336f965f6610551cd30e6"
        },
    ),
    "communities": (
        COMMUNITIES,
        {"communities.csv": "babba5f97ea1e25f88b5b244af3a855f23fe04a474d826b3159b5f321bf31c62"},
    ),
    "law_school": (
        LAW_SCHOOL,
        {"law_school.csv": "23c1b173f3480beb7afc4957b107a9917dfc4a8dc9d87ea6034ec35222152452"},
    ),
    "heart": (HEART, {"heart_disease_health_indicators_BRFSS2015.csv": ""}),
    "retired-adult": (RETIRED, {"adult_reconstruction.csv": ""}),
    **{f"acs-{state}": (ACS, {f"psam_p{code}.csv": ""}) for state, code in STATES.items()},
}
"""Schema, and files with the SHA-256 of their content; "" where nobody here has held the file, so
that its columns and values alone are checked. From UCI (Adult, doi:10.24432/C5XW20; Default
of Credit Card Clients, C55S3H; Parkinsons Telemonitoring, C5ZS3N; Communities and Crime, C53W3X, as
prepared by Kearns et al. 2018) and Wightman's LSAC study of 1998."""


def named(
    name: str,
    folder: str | None = None,
    *,
    target: str | None = None,
    sensitive: Iterable[str] | None = None,
) -> Named:
    """A set whose files, gzip or not, lie in `folder`, or where `FAIRVEIL_DATA` says. `target`,
    `sensitive`: other columns in those roles.

    Adult without rows that have a "?", as in the papers; Parkinson's with their label, total_UPDRS
    above its published median; of Communities and Crime racial shares cut at a public threshold.
    """
    schema, files = SETS[name]
    texts = [_content(file, sha, folder).decode() for file, sha in files.items()]
    rows = [
        [cell.strip() for cell in row]
        for text in texts
        for row in csv.reader(io.StringIO(text))
        if row
    ]
    if name == "adult":
        header, rows = (
            list(ADULT_COLUMNS),
            [row for row in rows if len(row) == len(ADULT_COLUMNS) and "?" not in row],
        )
    else:
        header, *rows = rows
    lacking = sorted(schema.columns.keys() - {*header} - DERIVED)
    if lacking:
        remedy = "It is another file, or another version of it."
        raise DataNotFoundError.expected(f"columns {lacking}", of=name, got=header, remedy=remedy)
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    if name.startswith("acs-"):
        cells = [one for one in cells if _is_worker(one)]
    if name == "retired-adult":
        cells = [one for one in cells if "?" not in one.values()]
    columns = {
        column: _typed([one[column].rstrip(".") for one in cells], kind)
        for column, kind in schema.columns.items()
        if column in header
    }
    if "above" in schema.columns:
        income = "PINCP" if name.startswith("acs-") else "income"
        columns["above"] = np.array([float(one[income]) > RICH for one in cells])
    if name == "parkinsons":
        columns["high_UPDRS"] = columns["total_UPDRS"].astype(np.float64) > MEDIAN_UPDRS
    if name == "communities":
        for share in SHARES:
            columns[f"{share}_high"] = columns[share] > HIGH_SHARE
    return Named(schema.with_roles(target=target, sensitive=sensitive), columns)


MNIST = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MNIST_TRAINING = 60_000


def mnist(folder: str | None = None) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Pixels (rows, 1, 28, 28) and digits, those of training first: the four files of LeCun et al.,
    whose headers have 16 and 8 bytes."""
    found = [np.frombuffer(_content(file, sha, folder), np.uint8) for file, sha in MNIST.items()]
    pixels = np.concatenate([one[16:] for one in found[:2]]).reshape(-1, 1, 28, 28)
    return pixels, np.concatenate([one[8:] for one in found[2:]]).astype(np.int64)


def _is_worker(cells: Mapping[str, str]) -> bool:
    """Ding et al.'s filter of adults: above 16, with an income above 100, who work; rows with a
    cell that is missing have no class of worker."""
    age, income, hours, weight = (cells[name] for name in ("AGEP", "PINCP", "WKHP", "PWGTP"))
    told = all(cells[name] for name in ("AGEP", "PINCP", "WKHP", "COW", "SCHL"))
    return told and int(age) > 16 and float(income) > 100 and float(hours) > 0 and int(weight) >= 1


def _typed(cells: list[str], column: object) -> npt.NDArray[Any]:
    if isinstance(column, Number):
        return np.array(cells, np.float64)
    if isinstance(column, Category) and not any(isinstance(one, str) for one in column.values):
        return np.array(cells, np.float64).astype(np.int64)
    return np.array(cells, dtype=object)


def _content(file: str, sha: str, folder: str | None) -> bytes:
    place = Path(folder or os.environ.get("FAIRVEIL_DATA") or ".").expanduser()
    for path in (place / file, place / f"{file}.gz"):
        if path.is_file():
            found = path.read_bytes()
            found = gzip.decompress(found) if found[:2] == b"\x1f\x8b" else found
            if sha and hashlib.sha256(found).hexdigest() != sha:
                remedy = "It is another version, or broken: fetch it anew."
                raise ChecksumError.expected(
                    f"content with SHA-256 {sha}", of=str(path), got="another", remedy=remedy
                )
            return found
    remedy = "Name the folder that holds it, or set FAIRVEIL_DATA to it."
    raise DataNotFoundError.expected(f"a file {file}", of=str(place), got="none", remedy=remedy)
