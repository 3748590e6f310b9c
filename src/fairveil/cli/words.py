"""Every option of the command line, its words once: what it is called, takes and does.

A row: name, what it takes, its kind, and its words; under the panel in which `--help` shows it. A
row that begins with `command:` is of that command alone. Options of `fairveil fit` that have no row
are parameters of its estimator, which says what they mean (`fields`).

Kinds: `text`, `path`, `number`, `whole`, `one` (one of the words that it takes), `flag`; with an `s`
at the end it may be given again.
"""

from __future__ import annotations

from dataclasses import dataclass

from .fields import METHODS

LEDGER_VARIABLE = "FAIRVEIL_LEDGER"
PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"

TABLE = """
[Arguments]
TABLE - text : a CSV file (gzip or not), a Parquet file, a coded store, or a database with --query
fit:TABLE - text : a CSV or Parquet file, a coded store, a database with --query, or fit.toml
monitor:TABLE - text : the rows of a period; without it the monitor says what it knows
schema check:TABLE - text : a table: has it the schema's columns? no row is read
DIR - path : a model that `fairveil fit` or the library wrote
MODEL - text : a model's folder, or - with --prediction
TARGET - text : a model's folder, or module:function, which fits a table
STATE - path : the file that keeps the monitor
SCHEMA - path : a schema file, TOML or JSON
FIGURE - text : a paper, or one of its figures: 004, 004:fig2, all; several with commas
FILE - path : a statement, certificate, private table, released groups, or a model's folder
sign:FILE - path : a statement, or a folder that holds one, whose other files are signed too
URL - text : a file, or postgresql://... [default: FAIRVEIL_LEDGER]
DATASET - text : name the data set

[Data]
schema FILE path : the table's public facts, TOML or JSON; `fairveil schema init` writes one
plan:schema FILE path : plan for a table of these public facts
attack:schema FILE path : make tables of these public facts [default: the model's own]
ledger create:schema FILE path : take only rows that are read by this schema
target COLUMN text : predict this column [default: the schema's]
sensitive COLUMN texts : make groups of this column; repeat for more [default: the schema's]
ledger create:sensitive COLUMN texts : protect this column, with sensitive-features; repeat for more
query SQL text : read this table of a database, or this SELECT
rows N whole : suppose about so many rows [default: the schema's]
shares COLUMN=VALUE:SHARE,... texts : suppose groups or classes of this size: sex=f:0.3,m:0.7
prediction COLUMN text : take the decisions in this column, whoever made them
candidate NAME=WHAT texts : compare this column of decisions, or this model's folder; repeat for more
tolerance NUMBER number : allow this much more loss than the base's: 0.01 is a point of error
measure NAME:adverse_impact_ratio|selection_rate_gap|true_positive_rate_ratio|true_positive_rate_gap one : seek to improve this
reference GROUP text : compare groups with this one [default: each with each]
lda:plan FILE path : fix the plan in this file first (.json); if it is there, it must be the same
audit:model DIR path : take the decisions of this model
lda:model DIR path : take the decisions of this model
period NAME text : count TABLE as this period, which is new
public - flag : read bounds and values from the rows, because they are public
data DIR path : find the files of rows here [default: FAIRVEIL_DATA]
certificate FILE path : of a model card: read a certificate of the model

[Fairness]
constraint NAME:BOUND texts : require this bound, as in demographic_parity:5%; repeat for more
audit:constraint NAME:BOUND texts : ask whether this bound holds; repeat for more
certify:constraint NAME:BOUND texts : certify this bound, as in equalized_odds:5%; repeat for more
monitor:constraint NAME:BOUND texts : begin a monitor of this bound; repeat for more
frontier:constraint NAME texts : sweep this gap [default: demographic_parity]; others have a bound
confidence SHARE number : set rows aside, target a tighter bound, and certify the required one
certify:confidence SHARE number : certify a broken bound with probability at most one minus this
attack:confidence SHARE number : refute a true claim with probability at most one minus this
certify NAME:BOUND texts : set rows aside, and certify this bound, which the fit does not aim at
gaps NUMBERS text : require these bounds, one a model: 0.2,0.1 or 20%,10%
group COLUMN:VALUE,... texts : begin with these groups; repeat for more columns
classes VALUE,... text : begin with these classes
groups MODE:product|marginal one : combine several sensitive columns, or take them one by one

[Method]
method NAME:METHODS one : the method; its parameters are listed by --method NAME --help
model NAME:auto|linear|additive one : a model linear in the columns, or with steps of each number; auto: steps where they pay
set NAME=VALUE texts : any other parameter, as in rounds=100; repeat for more
grid NAME=VALUE,... texts : search these values of a parameter privately; repeat for more
quick - flag : run fewer seeds and settings, in a few minutes
reproduce:seeds N whole : take so many seeds [default: 5, quick 2]
scoring NAME:error|gap|lagrangian one : of a search: minimize this [default: error]

[Privacy]
epsilons NUMBERS text : set these privacy budgets, one a model; inf is not private
certify:epsilon NUMBER number : privacy budget of the counts; inf: people are public or consented
monitor:epsilon NUMBER number : begin with this budget
attack:epsilon NUMBER number : set what a function claims
ledger create:epsilon NUMBER number : set what all releases together may cost
ledger create:unit COLUMN text : make it each person's budget, who are identified by this column
ledger create:max-rows-per-unit N whole : the most rows of any person: releases about rows are taken
production - flag : refuse seeded noise, and what was read from the data
seed N whole : repeat the noise; the result is flagged INSECURE
predict:seed N whole : repeat the draws of a randomized model
attack:seed N whole : set the seed of tables and runs
seeds N whole : fit N models a point, with bands; flagged INSECURE

[Rows to measure on]
holdout SHARE number : measure on this part of TABLE, which is not trained on nor covered
minutes NUMBER number : take about so long
trials N whole : run so many pairs instead, so that a seed repeats the audit

[Ledger]
ledger URL text : record the release here: a file, or postgresql://... [default: FAIRVEIL_LEDGER]
dataset NAME text : take this budget, where the ledger has several
purpose TEXT text : write down what it is for
statement FILE paths : look for this statement, or that of a model's folder; repeat for more

[Output]
out DIR path : write this folder, whole or not at all
release-groups:out FILE path : write this file
reproduce:out DIR path : write pictures and JSON here
plan:out FILE paths : write a page (.html), or the plan (.json, .txt); repeat for more
predict:out FILE path : write this CSV file [default: standard output]
export:out FILE path : write a query (.sql), or a model card (.md)
audit:out FILE paths : write a page (.html), or the table for `verify` (.json); repeat for both
certify:out FILE paths : write the certificate (.json), or a page (.html); repeat for both
lda:out FILE paths : write the record (.json), or a page (.html); repeat for both
attack:out FILE paths : write the result (.json), or a page (.html); repeat for both
schema init:out FILE path : write this file, .toml
sign:out FILE path : write this file [default: statement.json.sig beside it]
ledger show:out FILE paths : write a page (.html) or the numbers (.json); repeat for both
attack:statement FILE path : write the statement of a model's folder, with this audit in it
key FILE path : sign with this private key
lda:key FILE path : sign the plan first, and the record, with this private key
verify:key FILE path : check the signature, too, with the signer's public key
note TEXT text : sign this line of words, too
new-key FILE path : make a new pair of keys; sign nothing
passphrase - flag : ask for a passphrase of the new key (or read FAIRVEIL_KEY_PASSPHRASE)
inconsistent - flag : sign a statement that contradicts itself, too
keep COLUMN texts : copy this column beside the decisions; repeat for more
frontier:keep DIR path : write every model, too, each into a folder of its own in this one
proba - flag : add a column of probability for each class
table NAME text : read this table [default: rows]
materialized - flag : compute each step once; long queries always do
tuning TEXT text : say in the statement what was tried before
earlier-releases TEXT text : say in the statement what is already published
json - flag : print JSON
force - flag : replace what an earlier run wrote there

[Server]
config FILE path : the data holder's configuration
port N whole : listen on this port [default: the configuration's, or 8422]
check - flag : open everything, say what would be served, and end
quiet - flag : write no log of requests to standard error
issue TEXT text : issue a token to this person, show it this once, and end
role ROLE:analyst|holder one : what the token may do [default: analyst]
days N number : let the token end after so many days [default: 90]
serve:dataset NAME texts : open this data set; repeat [default: all of them]
list - flag : list the tokens and the latest runs, and end
revoke TOKEN text : end this token now, by its first part, as --list has it
stop RUN text : stop this run, as --list has it
"""


@dataclass(frozen=True)
class Words:
    """One option or argument: what it takes, what it is, what it does, where help shows it."""

    takes: str
    kind: str
    does: str
    panel: str

    @property
    def metavar(self) -> str:
        return self.takes.partition(":")[0] if self.kind.rstrip("s") == "one" else self.takes

    @property
    def choices(self) -> tuple[str, ...]:
        listed = self.takes.partition(":")[2] if self.kind.rstrip("s") == "one" else ""
        return tuple(listed.split("|")) if listed else ()


def _read() -> dict[str, Words]:
    found, panel = {}, ""
    for line in filter(None, TABLE.replace("METHODS", "|".join(METHODS)).splitlines()):
        if line.startswith("["):
            panel = line.strip("[]")
            continue
        head, _, does = line.partition(" : ")
        name, takes, kind = head.rsplit(" ", 2)
        found[name] = Words(takes, kind, does, panel)
    return found


WORDS = _read()
PANELS = tuple(dict.fromkeys(one.panel for one in WORDS.values()))
