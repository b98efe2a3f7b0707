"""Finds what makes a result wrong: the stage, then the rewrite inside it, or the kernel.

The search never assumes that a fault once introduced stays visible: a place is named only when the program before it was
seen to be right and the one after it wrong. Programs are judged through the reference interpreter, on the snapshots of one
recorded compile; only when the final program is right and the machine code is not are kernels looked at
(`explorer.bisect_kernel`). Trials are remembered, and handed to `remember` for resuming.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compiler.ir.location import source_line
from compiler.ir.program import Module
from compiler.ir.replay import apply
from compiler.ir.rewrite import Rewrite
from compiler.options import CompileOptions
from compiler.plugins import Registry
from explorer.case import BAD, GOOD, UNKNOWN, Case, Verdict, evaluate
from explorer.trace import StageRecord, Trace

NONE, INPUT, STAGE, REWRITE, KERNEL, PLAN = "none", "input", "stage", "rewrite", "kernel", "plan"


@dataclass(frozen=True)
class Finding:
    """The answer. `kind` is none, input, stage, rewrite, kernel or plan; fields that do not apply are empty."""

    kind: str
    summary: str
    stage: str = ""
    pass_name: str = ""
    rewrite: str = ""
    rule: str = ""
    law: str = ""
    rule_source: str = ""
    computation: str = ""
    instruction: str = ""
    made: tuple[str, ...] = ()
    kernel: str = ""
    source: str = ""
    detail: str = ""
    candidates: tuple[str, ...] = ()
    """Stages or rewrites of which one is to blame, where the oracle could not tell them apart."""
    mended_by_refusing: bool | None = None
    """True when the compile with only this rewrite refused is right; None when that was not tried."""
    trials: int = 0
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """For scripts."""
        return {"version": 1, **asdict(self)}


@dataclass
class Progress:
    """What the search is doing, for a line on the screen."""

    say: Callable[[str], None] = lambda text: None
    check_cancelled: Callable[[], None] = lambda: None
    remember: Callable[[Mapping[str, Verdict]], None] = lambda known: None


@dataclass
class Bisection:
    """One search. `known` holds verdicts of an earlier, interrupted one by key."""

    case: Case
    options: CompileOptions
    registry: Registry
    progress: Progress = field(default_factory=Progress)
    known: dict[str, Verdict] = field(default_factory=dict)
    repeats: int = 1
    trials: int = 0
    notes: list[str] = field(default_factory=list)
    trace: Trace | None = None
    """The recording of the compile that was searched, once there is one."""

    def run(self) -> Finding:
        """Searches to the end and returns the finding."""
        started = self._judge_module("input", self.case.module)
        if started.result != GOOD:
            summary = "the program as it was read already gives wrong results by the reference interpreter"
            if started.result == UNKNOWN:
                summary = "the oracle cannot judge the program as it was read"
            return self._finish(Finding(INPUT, summary, detail=started.detail))
        trace, optimised = self._compile(self.options)
        self.trace = trace
        final = self._judge_module("final", trace.final)
        if final.result == BAD:
            return self._finish(self._in_stages(trace, final))
        return self._finish(self._in_code(trace, optimised))

    def _finish(self, finding: Finding) -> Finding:
        return replace(finding, trials=self.trials, notes=tuple(self.notes))

    # ---- trials --------------------------------------------------------------------------------------------------

    def _compile(self, options: CompileOptions) -> tuple[Trace, Any]:
        from compiler.driver import optimise
        from explorer.recorder import Recorder

        recorder = Recorder(Trace(self.case.path, self.case.module))
        check = self.progress.check_cancelled
        optimised = optimise(
            self.case.module, options, recorder, registry=self.registry, check_cancelled=check
        )
        return recorder.finish(), optimised

    def _judge_module(self, key: str, module: Module) -> Verdict:
        """Evaluates a program and asks the oracle; remembers the answer under `key`."""
        self.progress.check_cancelled()
        if key in self.known:
            return self.known[key]
        self.trials += 1
        self.progress.say(f"trial {self.trials}: {key}")
        try:
            outputs = evaluate(module, self.case.inputs, self.registry.custom_calls)
        except Exception as error:
            verdict = Verdict(BAD, f"cannot be evaluated: {type(error).__name__}: {error}")
        else:
            verdict = self.case.oracle.judge(outputs, module)
        self._note(key, verdict)
        return verdict

    def judge_executable(self, key: str, executable: Any, module: Module) -> Verdict:
        """Runs machine code and asks the oracle, repeatedly when results may differ from run to run."""
        verdict = Verdict(UNKNOWN)
        for attempt in range(max(1, self.repeats)):
            self.progress.check_cancelled()
            self.trials += 1
            self.progress.say(f"trial {self.trials}: {key}")
            verdict = self.case.oracle.judge(executable.run(self.case.inputs), module)
            if verdict.result == BAD:
                if attempt:
                    self.notes.append(f"{key}: right at first, wrong at run {attempt + 1}: a race")
                break
        self._note(key, verdict)
        return verdict

    def _note(self, key: str, verdict: Verdict) -> None:
        self.known[key] = verdict
        self.progress.remember(self.known)

    # ---- stages --------------------------------------------------------------------------------------------------

    def _in_stages(self, trace: Trace, final: Verdict) -> Finding:
        changed = [stage for stage in trace.stages if stage.changed]
        if not changed:
            return Finding(NONE, "the oracle contradicts itself: the program is the one it called right")
        self.known.setdefault(f"after {changed[-1].id}", final)
        place = self._first_bad(
            len(changed), lambda index: self._judge_module(f"after {changed[index].id}", changed[index].after)
        )
        if place is None:
            return Finding(
                NONE, "the oracle contradicts itself: it called the final program wrong, then right"
            )
        good, bad = place
        if bad - good > 1:
            ids = tuple(stage.id for stage in changed[good + 1 : bad + 1])
            return Finding(STAGE, _one_of("stages", ids), candidates=ids, detail=final.detail)
        return self._in_stage(changed[bad], final)

    def _first_bad(self, count: int, judge: Callable[[int], Verdict]) -> tuple[int, int] | None:
        """Indices (good, bad), next to each other unless those between cannot be judged; before index 0 all is good.

        Halves the range first; unknown ones are walked around.
        """
        low, high = -1, count - 1
        while high - low > 1:
            middle = self._tellable(low, high, judge)
            if middle is None:
                break
            if judge(middle).result == BAD:
                high = middle
            else:
                low = middle
        return None if judge(high).result == GOOD else (low, high)

    def _tellable(self, low: int, high: int, judge: Callable[[int], Verdict]) -> int | None:
        middle = (low + high) // 2
        for distance in range(high - low):
            for index in (middle - distance, middle + distance):
                if low < index < high and judge(index).result != UNKNOWN:
                    return index
        return None

    def _in_stage(self, stage: StageRecord, final: Verdict) -> Finding:
        rewrites = stage.rewrites
        detail = self._judge_detail(stage, final)
        found = Finding(
            STAGE,
            f"stage {stage.id} makes the result wrong",
            stage.id,
            stage.pass_name,
            detail=detail,
        )
        if not rewrites:
            return replace(found, summary=f"{found.summary}; it reported no rewrites to look into")

        def judge(index: int) -> Verdict:
            key = f"{stage.id}: first {index + 1} of {len(rewrites)} rewrites"
            return self._judge_module(key, apply(stage.before, rewrites[: index + 1]))

        place = self._first_bad(len(rewrites), judge)
        if place is None:
            return replace(found, summary=f"{found.summary}; its rewrites replayed one by one are right")
        good, bad = place
        if bad - good > 1:
            ids = tuple(rewrite.id for rewrite in rewrites[good + 1 : bad + 1])
            return replace(found, summary=f"{found.summary}: {_one_of('rewrites', ids)}", candidates=ids)
        return self._about(found, stage, rewrites[bad])

    def _judge_detail(self, stage: StageRecord, final: Verdict) -> str:
        verdict = self._judge_module(f"after {stage.id}", stage.after)
        return verdict.detail or final.detail

    def _about(self, found: Finding, stage: StageRecord, rewrite: Rewrite) -> Finding:
        line = source_line(rewrite.location)
        where = f" at {line}" if line else ""
        refused = self._refusing(rewrite.id)
        return replace(
            found,
            kind=REWRITE,
            summary=f"stage {stage.id}, rule {rewrite.rule.id} on {rewrite.root}{where} makes the result wrong",
            rewrite=rewrite.id,
            rule=rewrite.rule.id,
            law=rewrite.rule.law,
            rule_source=rewrite.rule.source,
            computation=rewrite.computation,
            instruction=rewrite.root,
            made=rewrite.made,
            source=str(line) if line else "",
            mended_by_refusing=refused,
        )

    def _refusing(self, identity: str) -> bool | None:
        """Compiles with only this rewrite refused; tells whether the final program is then right."""
        restraint = replace(self.options.restraint, refuse=self.options.restraint.refuse | {identity})
        try:
            trace, _ = self._compile(replace(self.options, restraint=restraint))
        except Exception as error:
            self.notes.append(f"compiling with the rewrite refused failed: {error}")
            return None
        verdict = self._judge_module(f"refusing {identity}", trace.final)
        return verdict.result == GOOD if verdict.result != UNKNOWN else None

    # ---- code ----------------------------------------------------------------------------------------------------

    def _in_code(self, trace: Trace, optimised: Any) -> Finding:
        from compiler.driver import generate
        from explorer.bisect_kernel import wrong_kernel

        if optimised.plan is None:
            return Finding(NONE, "the optimised program is right, and no code was made")
        compilation = generate(optimised)
        try:
            verdict = self.judge_executable("machine code", compilation.executable, trace.final)
            if verdict.result != BAD:
                return Finding(
                    NONE, "nothing is wrong: every program and the machine code give right results"
                )
            return wrong_kernel(self, optimised, compilation.executable, verdict)
        finally:
            compilation.executable.close()


def _one_of(what: str, ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:6]) + (", …" if len(ids) > 6 else "")
    return f"one of the {what} {shown} makes the result wrong; all but the last could not be judged"


def text(finding: Finding) -> str:
    """The finding in words."""
    lines = [finding.summary]
    rows: Sequence[tuple[str, str]] = (
        ("stage", f"{finding.stage} ({finding.pass_name})" if finding.stage else ""),
        ("rewrite", finding.rewrite),
        ("rule", f"{finding.rule}: {finding.law}" if finding.rule else ""),
        ("written in", finding.rule_source),
        ("kernel", finding.kernel),
        ("computation", finding.computation),
        ("instruction", finding.instruction),
        ("made", ", ".join(finding.made)),
        ("source line", finding.source),
        ("seen", finding.detail),
    )
    lines += [f"  {label:<12} {value}" for label, value in rows if value]
    if finding.mended_by_refusing is not None:
        mended = "right" if finding.mended_by_refusing else "still wrong"
        lines.append(f"  {'without it':<12} the result is {mended}")
    lines += [f"  {'note':<12} {note}" for note in finding.notes]
    lines.append(f"  {'trials':<12} {finding.trials}")
    return "\n".join(lines)
