"""The public facts of the named benchmark sets.

Bounds and lists come from each set's public documentation or, where that gives none, are round
numbers that are plausible for what is measured; none was read from the rows. A value beyond a bound
is clipped.
"""

from __future__ import annotations

from ..facts.columns import Boolean, Category, Column, Ignored, Number
from ..facts.schema import Schema
from .raw_sets import PIXELS

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

_VOICE: dict[str, Column] = {
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
        "averages: plausible round bounds. For regression: get('law_school', target='zfygpa')."
    ),
)

MNIST = Schema(
    {**{f"pixel{at}": Number(0, 255) for at in range(PIXELS)}, "digit": Category(tuple(range(10)))},
    target="digit",
    rows=70_000,
    name="mnist",
    source="LeCun's description of MNIST: 28 x 28 pixels of 0-255, ten digits. No sensitive "
    "column.",
)
