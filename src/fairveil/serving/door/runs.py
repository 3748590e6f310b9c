"""Runs: opened by an analyst, asked, and settled. The holder's curator does the rest.

A run reserves its whole plan in the data set's ledger before it is asked anything. Each request has
a key: a repeated one gets the reply that was written down, and nothing is drawn or charged again
(theory.md#repeats).

Guarantees (tests/serving/test_serving_runs.py, tests/serving/test_serving_crashes.py):
1. No reply leaves before it and its release are written; one key has one reply, also after the
   server was killed. After its machine was started anew, when some may be missing, an open run is
   over, and charged whole.
2. A run that ends before its plan did, by its analyst, by the holder or by the clock, is charged
   what it released; one whose answer failed inside is charged whole.
3. A run is its token's: others are told what they are told of a run that is not there.
4. All answers of a run are of the same rows: one whose rows have changed is not taken up again
   (tests/serving/test_serving_rows.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...core.cost import price
from ...curator import Curator
from ...errors import DoorError, FairveilError, LedgerAway
from ...ledger import Ledger
from ...statement.document import PublicFact
from ..wire.messages import Message, packed, unpacked
from .acts import ACTS, SAID, STATEFUL, STATEMENT, Doing
from .attaching import digest_of
from .data_sets import DataSet
from .divisions import DivisionPart, Divisions
from .holder import Limits
from .opening import Opened, opening_of, sources_of
from .record_rows import ENDED, OPEN, OPENING, SETTLING, Reply, RunRecord
from .records import Records
from .refusals import BUSY, ENDED_RUN, REUSED, TOO_MANY, UNKNOWN, Refusal
from .run import CLOSE, FINISH, FINISHED, KEPT_AFTER, NEVER_BEGAN, REBOOTED, STOP, WHOLE, Run
from .run_journal import RunJournal
from .settling import settle
from .tokens import DAY, Token, Tokens


class Runs:
    """All runs of a door."""

    def __init__(
        self,
        records: Records,
        tokens: Tokens,
        datasets: dict[str, DataSet],
        limits: Limits,
        signer: Any = None,
    ) -> None:
        self.records, self.tokens, self.datasets, self.limits, self.signer = (
            records,
            tokens,
            datasets,
            limits,
            signer,
        )
        self.divisions = Divisions(records)
        for dataset in datasets.values():
            dataset.divisions = self.divisions
        self._held: dict[str, Run] = {}
        self._opening = threading.RLock()
        self._beginning: set[str] = set()
        self._ledgers: dict[tuple[str, str], Ledger] = {}

    # -- opening -----------------------------------------------------------------------------------

    def open(self, token: Token, key: str, body: bytes) -> bytes:
        """A new run, or the one that this key opened before."""
        digest = digest_of(b"open", body)
        with self._opening:
            known = self.records.run_of_key(token.id, key)
            if known is not None and known.digest != digest:
                raise Refusal(*REUSED)
            if known is not None and known.state != OPENING and known.how != NEVER_BEGAN:
                return packed({"run": known.id})
            message = unpacked(body)
            dataset = self._seen(token, message.content["dataset"].text())
            asked = opening_of(message, dataset, self.limits)
            self._require_part(token, asked)
            dataset.ledger.require(asked.promise, secure=asked.seeds is None, schema=dataset.schema)
            # it died before it was open: what it reserved goes back, and another run takes its key
            if known is not None:
                self._settled(known.id, NEVER_BEGAN, False)
                self.records.retire(known.id)
            # what a promise says of its plan is the analyst's to choose; what the plan costs is not
            limited = token.scope.epsilon_a_day is not None
            epsilon = asked.ledger_epsilon if limited else asked.promise.epsilon
            self.tokens.require_room(token, asked.promise, epsilon)
            self._require_few(token)
            return packed({"run": self._begun(token, key, digest, body, asked, epsilon).id})

    def _begun(
        self, token: Token, key: str, digest: bytes, body: bytes, asked: Opened, epsilon: float
    ) -> Run:
        id, now, name = Opened.new_id(), time.time(), asked.dataset.name
        record = RunRecord(
            id,
            token.id,
            key,
            digest,
            name,
            body,
            OPENING,
            "",
            epsilon,
            now,
            now,
            None,
            True,
            0,
            None,
        )
        self._beginning.add(id)
        try:
            self.records.begin(record, asked.dataset.rows_digest)
            run = self._taken_up(record, asked, token.name)
            self.records.put(id, state=OPEN)
        except BaseException:
            self._held.pop(id, None)
            with suppress(DoorError):  # else the clock does
                self._settled(id, NEVER_BEGAN, False)
            raise
        finally:
            self._beginning.discard(id)
        return run

    def _taken_up(self, record: RunRecord, asked: Opened, who: str) -> Run:
        """Its curator, begun or behind its last reply; what was attached and rescaled is done
        again."""
        dataset, journal = asked.dataset, RunJournal(self.records, record.id)
        facts = [
            PublicFact(
                "served by",
                "a curator behind a door; it read the rows by this data set's schema alone",
                "schema",
            )
        ]
        facts += dataset.facts_of(asked.view)
        told = asked.public_rows
        if told is not None and told != dataset.schema.rows:
            facts.append(PublicFact("number of rows", f"{SAID}{told}", "argument"))
        curator = Curator(
            dataset.rows_of(asked.view),
            asked.promise,
            plan=asked.plan,
            noise=sources_of(asked),
            public_rows=asked.public_rows,
            facts=facts,
            earlier=journal,
            ledger=self._ledger(dataset, who),
            purpose=f"run {record.id}: {asked.purpose}",
            stated_clips=asked.stated_clips,
            one_group=asked.view.one_group,
        )
        run = Run(record.id, record.token, dataset, curator, journal, asked.plan)
        for reply in self.records.replies(record.id):
            assert reply.request is not None
            self._doing(run, None, unpacked(reply.request)).do(reply.act)
        journal.taken()
        run.ended = None if record.state in (OPENING, OPEN) else time.time()
        self._held[record.id] = run
        return run

    def _ledger(self, dataset: DataSet, who: str) -> Ledger:
        key = (dataset.name, who)
        if key not in self._ledgers:
            self._ledgers[key] = Ledger.open(
                dataset.served.ledger, dataset.served.ledger_name, who=f"{who}, by the door"
            )
        return self._ledgers[key]

    def _require_part(self, token: Token, asked: Opened) -> None:
        if asked.view.part is not None:
            dataset = asked.dataset
            self.divisions.require(token.id, asked.view.part, dataset.name, dataset.rows_digest)

    def divide(self, token: Token, name: str, key: str, body: bytes) -> bytes:
        """A division of a data set in two parts; how many rows each has, where the number of rows
        is public."""
        dataset = self._seen(token, name)
        with self._opening:
            told = token, key, body, unpacked(body), name, dataset.rows_digest
            id = self.divisions.make(*told, seeded=dataset.served.seeded)
        whole = dataset.exact_rows
        counts = (
            None
            if whole is None
            else [len(self.divisions.rows_of(DivisionPart(id, part), whole)) for part in (0, 1)]
        )
        return packed({"division": id, "rows": counts})

    def _require_few(self, token: Token) -> None:
        live = self.records.runs((OPENING, OPEN))
        if (
            len(live) >= self.limits.open_runs_in_all
            or sum(run.token == token.id for run in live) >= self.limits.open_runs
        ):
            raise Refusal(*TOO_MANY)

    def _seen(self, token: Token, name: str) -> DataSet:
        found = self.datasets.get(name)
        if found is None or not token.may_see(name) or token.role == "auditor":
            raise Refusal(*UNKNOWN)
        return found

    # -- asking ------------------------------------------------------------------------------------

    def act(self, token: Token, id: str, act: str, key: str, body: bytes) -> bytes:
        """One request to a run: the reply that was given before, or a new one, which is written
        down first."""
        record = self.records.run(id)
        if record is None or record.token != token.id or (act not in ACTS and act != CLOSE):
            raise Refusal(*UNKNOWN)
        digest = digest_of(act.encode(), body)
        known = self._known(id, key, digest)
        if known is not None:
            return known
        if act == CLOSE:
            return self._closed(record)
        if record.state != OPEN and act != STATEMENT:
            raise Refusal(*ENDED_RUN)
        message = unpacked(body)
        run = self._run(id, token, act)
        if not run.lock.acquire(timeout=self.limits.request_seconds):
            raise Refusal(*BUSY)
        try:
            known = self._known(id, key, digest)
            if known is not None:
                return known
            # dropped while this request waited: two curators of one run would both answer
            if self._held.get(id) is not run:
                raise Refusal(*BUSY)
            return self._done(run, token, act, key, digest, body, message)
        finally:
            run.lock.release()

    def _known(self, id: str, key: str, digest: bytes) -> bytes | None:
        found = self.records.reply(id, key)
        if found is not None and found.digest != digest:
            raise Refusal(*REUSED)
        return None if found is None else found.body

    def _done(
        self,
        run: Run,
        token: Token,
        act: str,
        key: str,
        digest: bytes,
        body: bytes,
        message: Message,
    ) -> bytes:
        if run.ended is not None and act != STATEMENT:
            raise Refusal(*ENDED_RUN)
        try:
            reply = self._doing(run, token, message).do(act)
        except BaseException as error:
            # a release was admitted and did not come: the run is over, and charged whole
            if run.curator.has_failed:
                self.end(run.id, "an answer failed inside", failed=True)
            elif run.journal.pending or not isinstance(error, FairveilError | Refusal):
                self._held.pop(run.id, None)  # what is on the disk is what counts
            raise
        entries, bounds, marks = run.journal.taken()
        kept = Reply(key, digest, act, body if act in STATEFUL else None, reply)
        over = {"state": SETTLING, "how": FINISHED} if act == FINISH else {}
        try:
            self.records.keep(run.id, kept, entries, bounds, marks, time.time(), **over)
        except BaseException:
            self._held.pop(run.id, None)
            raise
        if over:
            run.ended = time.time()
            self._settle(run.id)
        return reply

    def _doing(self, run: Run, token: Token | None, message: Message) -> Doing:
        return Doing(
            run.curator,
            run.dataset,
            run.plan,
            run.handles,
            message,
            token,
            self.signer,
            self._publish(run.id),
        )

    def _publish(self, id: str) -> Callable[[str], None]:
        return lambda text: self.records.put(id, statement=text)

    def _run(self, id: str, token: Token, act: str) -> Run:
        """The run in memory, or taken up again behind its last reply."""
        with self._opening:
            found = self._held.get(id)
            if found is not None:
                return found
            record = self.records.run(id)  # read under the lock: it may have ended since
            dataset = None if record is None else self.datasets.get(record.dataset)
            if (
                record is None
                or dataset is None
                or record.header is None
                or (record.state != OPEN and act != STATEMENT)
            ):
                raise Refusal(*ENDED_RUN)
            if record.state == OPEN:
                self.records.require_rows(record.id, dataset.rows_digest)
            asked = opening_of(unpacked(record.request), dataset, self.limits)
            try:
                return self._taken_up(record, asked, token.name)
            except (LedgerAway, DoorError):
                # nothing is known to be wrong: the same request goes on when the ledger is back,
                # or the disk has room
                raise
            except FairveilError:
                if record.state == ENDED:
                    raise Refusal(*ENDED_RUN) from None
                self._settled(record.id, "could not be taken up again", True)
                raise

    # -- ending ------------------------------------------------------------------------------------

    def _closed(self, record: RunRecord) -> bytes:
        self.end(record.id, "closed by the analyst")
        return packed({"ended": True})

    def end(self, id: str, how: str, *, failed: bool = False) -> bool:
        """End a run for good; whether it was still open. A request on its way is waited for, and
        charged."""
        run = self._held.get(id)
        if run is None:
            with self._opening:
                run = self._held.get(id)
                if run is None:
                    return self._settled(id, how, failed)
        run.curator.close()  # from here nothing more is admitted
        with run.lock:
            run.ended = run.ended or time.time()
            return self._settled(id, how, failed or run.curator.has_failed)

    def _settled(self, id: str, how: str, failed: bool) -> bool:
        record = self.records.run(id)
        if record is None or record.state not in (OPENING, OPEN):
            return False
        self.records.put(id, state=SETTLING, how=f"{how}{WHOLE if failed else ''}")
        self._settle(id)
        return True

    def _settle(self, id: str) -> None:
        """Tell the ledger; where it cannot be told, the clock tries again, and meanwhile all of it
        is charged."""
        record = self.records.run(id)
        dataset = None if record is None else self.datasets.get(record.dataset)
        if record is None or dataset is None:
            return
        try:
            failed, complete = record.how.endswith(WHOLE), record.how == FINISHED
            settle(self.records, record, dataset.ledger, failed=failed, complete=complete)
        except (FairveilError, OSError):
            return
        self.records.put(id, state=ENDED)

    # -- time --------------------------------------------------------------------------------------

    def recover(self) -> None:
        """At the start: runs that were being opened when the server died are given back; the others
        wait for their analysts. Where the machine was started anew, replies may be missing, and
        open runs are charged whole."""
        for record in self.records.runs((OPENING,)):
            self.end(record.id, NEVER_BEGAN)
        if self.records.was_rebooted:
            for record in self.records.runs((OPEN,)):
                self.end(record.id, REBOOTED, failed=True)
        self.records.note_boot()
        for record in self.records.runs((SETTLING,)):
            self._settle(record.id)

    def sweep(self, now: float | None = None) -> int:
        """End runs that nobody asked for too long; how many."""
        now, count = time.time() if now is None else now, 0
        for record in self.records.runs((OPENING, OPEN)):
            if record.state == OPENING:
                if record.id not in self._beginning:
                    count += self.end(record.id, NEVER_BEGAN)
            elif record.how == STOP:
                count += self.end(record.id, "stopped by the holder")
            elif now - record.touched > 60.0 * self.limits.run_minutes:
                count += self.end(record.id, "ended by the clock")
        for record in self.records.runs((SETTLING,)):
            self._settle(record.id)
        self.records.forget(now - DAY * self.limits.keep_days)
        self.divisions.forget(now - DAY * self.limits.keep_days)
        for id, run in list(self._held.items()):
            if run.ended is not None and now - run.ended > KEPT_AFTER:
                self._held.pop(id, None)
        return count

    def foretold(self, token: Token, name: str, message: Message) -> dict[str, Any]:
        """What a plan would cost, and whether there is room: nothing is reserved."""
        dataset = self._seen(token, name)
        asked = opening_of(message, dataset, self.limits)
        self._require_part(token, asked)
        dataset.ledger.require(asked.promise)
        cost = price(asked.plan, asked.promise.delta, asked.promise.neighbours).epsilon
        return {
            "epsilon": cost,
            "fits": dataset.ledger.fits(asked.plan, asked.promise),
            "balance": dataset.balance(),
        }
