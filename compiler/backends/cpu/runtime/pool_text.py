"""The worker pool and the parallel loop as LLVM IR text.

A pool is one block of memory. The caller of ``@xe.parallel_for`` publishes a job (function, arguments,
number of tasks), opens it, and bumps the epoch that idle workers watch. Everybody, the caller included,
claims ranges of tasks from one counter until none are left. Then the caller closes the job and waits for
those workers only that had joined it: one that wakes up late finds the job closed and delays nobody. A
second caller, or a task that calls again, finds the pool taken and runs its tasks itself.
"""

from __future__ import annotations

from compiler.backends.cpu.runtime.waiting import pause, waiting_text
from compiler.backends.cpu.target import Target

# Each field that different threads write has a cache line of its own.
EPOCH = 0
STATE = 64
NEXT = 128
JOB = 192
BUSY = 256
SLEEPERS = 320
CALLER_PARKED = 324
STOP = 328
WORKERS = 384
WORKER_SPIN = 392
CALLER_SPIN = 400
THREADS = 768

OPEN = 1 << 30
_RANGES_PER_THREAD = 4


def pool_bytes(threads: int) -> int:
    """The size of a pool of `threads` threads, the caller among them."""
    return THREADS + 8 * threads


def pool_text(target: Target, *, portable: bool = False) -> str:
    """The runtime's module.

    It defines ``i64 @xe.pool_start(ptr pool, i64 workers)`` (how many threads it started), ``void
    @xe.pool_stop(ptr pool)``, ``void @xe.parallel_for(ptr pool, ptr function, ptr arguments, i64 tasks)``
    and ``i64 @xe.now_ns()``. The function is ``void (ptr arguments, i64 begin, i64 end)``; a null pool runs
    everything on the caller.
    """
    declaration, pause_call = pause(target)
    clock = 1 if target.is_linux else 6
    return "\n".join(
        [
            declaration,
            waiting_text(target, portable=portable),
            _WORK,
            _worker_text(pause_call),
            _START_STOP,
            _parallel_for_text(pause_call),
            _now_text(clock),
        ]
    )


_WORK = f"""
define internal void @xe.claim_and_run(ptr %pool) nounwind {{
entry:
  %job = getelementptr i8, ptr %pool, i64 {JOB}
  %function = load ptr, ptr %job, align 8
  %arguments.at = getelementptr i8, ptr %job, i64 8
  %arguments = load ptr, ptr %arguments.at, align 8
  %tasks.at = getelementptr i8, ptr %job, i64 16
  %tasks = load i64, ptr %tasks.at, align 8
  %range.at = getelementptr i8, ptr %job, i64 24
  %range = load i64, ptr %range.at, align 8
  %next = getelementptr i8, ptr %pool, i64 {NEXT}
  br label %claim
claim:
  %begin = atomicrmw add ptr %next, i64 %range acq_rel, align 8
  %some = icmp slt i64 %begin, %tasks
  br i1 %some, label %run, label %none
run:
  %full = add i64 %begin, %range
  %short = icmp slt i64 %tasks, %full
  %end = select i1 %short, i64 %tasks, i64 %full
  call void %function(ptr %arguments, i64 %begin, i64 %end)
  br label %claim
none:
  ret void
}}
"""


def _worker_text(pause_call: str) -> str:
    return f"""
define internal ptr @xe.worker(ptr %pool) nounwind {{
entry:
  %state = getelementptr i8, ptr %pool, i64 {STATE}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %stop = getelementptr i8, ptr %pool, i64 {STOP}
  %parked = getelementptr i8, ptr %pool, i64 {CALLER_PARKED}
  %spin.at = getelementptr i8, ptr %pool, i64 {WORKER_SPIN}
  %spins = load i64, ptr %spin.at, align 8
  br label %idle
idle:
  %last = phi i32 [ 0, %entry ], [ %last, %park ], [ %epoch, %join ], [ %epoch, %left ]
  br label %watch
watch:
  %round = phi i64 [ 0, %idle ], [ %round.next, %again ]
  %epoch = load atomic i32, ptr %pool acquire, align 4
  %new = icmp ne i32 %epoch, %last
  br i1 %new, label %woken, label %same
same:
  %round.next = add i64 %round, 1
  %patient = icmp slt i64 %round, %spins
  br i1 %patient, label %again, label %park
again:
  {pause_call}
  br label %watch
park:
  ; The order is what makes this safe: announce the sleep, then compare the epoch (in park). Whoever bumps
  ; the epoch does it before looking for sleepers.
  %b = atomicrmw add ptr %sleepers, i32 1 seq_cst, align 4
  call void @xe.park(ptr %pool, ptr %pool, i32 %last)
  %c = atomicrmw sub ptr %sleepers, i32 1 seq_cst, align 4
  br label %idle
woken:
  %stopping = load atomic i32, ptr %stop acquire, align 4
  %ends = icmp ne i32 %stopping, 0
  br i1 %ends, label %finish, label %look
look:
  %before = load atomic i32, ptr %state acquire, align 4
  br label %join
join:
  %seen = phi i32 [ %before, %look ], [ %now, %attempt ]
  %bit = and i32 %seen, {OPEN}
  %closed = icmp eq i32 %bit, 0
  br i1 %closed, label %idle, label %attempt
attempt:
  %joined = add i32 %seen, 1
  %swap = cmpxchg ptr %state, i32 %seen, i32 %joined acq_rel acquire, align 4
  %now = extractvalue {{ i32, i1 }} %swap, 0
  %in = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %in, label %work, label %join
work:
  call void @xe.claim_and_run(ptr %pool)
  %had = atomicrmw sub ptr %state, i32 1 seq_cst, align 4
  %last.out = icmp eq i32 %had, 1
  br i1 %last.out, label %tell, label %left
tell:
  %waits = load atomic i32, ptr %parked seq_cst, align 4
  %asleep = icmp ne i32 %waits, 0
  br i1 %asleep, label %wake, label %left
wake:
  call void @xe.unpark(ptr %pool, ptr %state, i32 1)
  br label %left
left:
  br label %idle
finish:
  ret ptr null
}}
"""


_START_STOP = f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define i64 @xe.pool_start(ptr %pool, i64 %wanted) nounwind {{
entry:
  call void @xe.init_waiting(ptr %pool)
  %threads = getelementptr i8, ptr %pool, i64 {THREADS}
  br label %head
head:
  %started = phi i64 [ 0, %entry ], [ %more, %next ]
  %wants = icmp slt i64 %started, %wanted
  br i1 %wants, label %create, label %done
create:
  %slot = getelementptr i64, ptr %threads, i64 %started
  %failed = call i32 @pthread_create(ptr %slot, ptr null, ptr @xe.worker, ptr %pool)
  %refused = icmp ne i32 %failed, 0
  br i1 %refused, label %done, label %next
next:
  %more = add i64 %started, 1
  br label %head
done:
  %count = getelementptr i8, ptr %pool, i64 {WORKERS}
  store i64 %started, ptr %count, align 8
  ret i64 %started
}}

define void @xe.pool_stop(ptr %pool) nounwind {{
entry:
  %stop = getelementptr i8, ptr %pool, i64 {STOP}
  store atomic i32 1, ptr %stop seq_cst, align 4
  %epoch = atomicrmw add ptr %pool, i32 1 seq_cst, align 4
  call void @xe.unpark(ptr %pool, ptr %pool, i32 {(1 << 31) - 1})
  %count.at = getelementptr i8, ptr %pool, i64 {WORKERS}
  %count = load i64, ptr %count.at, align 8
  %threads = getelementptr i8, ptr %pool, i64 {THREADS}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %join ]
  %some = icmp slt i64 %i, %count
  br i1 %some, label %join, label %done
join:
  %slot = getelementptr i64, ptr %threads, i64 %i
  %thread = load i64, ptr %slot, align 8
  %r = call i32 @pthread_join(i64 %thread, ptr null)
  %next = add i64 %i, 1
  br label %head
done:
  store i64 0, ptr %count.at, align 8
  ret void
}}
"""


def _parallel_for_text(pause_call: str) -> str:
    return f"""
define void @xe.parallel_for(ptr %pool, ptr %function, ptr %arguments, i64 %tasks) nounwind {{
entry:
  %several = icmp sgt i64 %tasks, 1
  %has = icmp ne ptr %pool, null
  %may = and i1 %several, %has
  br i1 %may, label %size, label %alone
size:
  %count.at = getelementptr i8, ptr %pool, i64 {WORKERS}
  %count = load i64, ptr %count.at, align 8
  %helped = icmp ne i64 %count, 0
  br i1 %helped, label %take, label %alone
take:
  %busy = getelementptr i8, ptr %pool, i64 {BUSY}
  %swap = cmpxchg ptr %busy, i32 0, i32 1 acq_rel acquire, align 4
  %taken = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %taken, label %publish, label %alone
alone:
  %any = icmp sgt i64 %tasks, 0
  br i1 %any, label %inline, label %return
inline:
  call void %function(ptr %arguments, i64 0, i64 %tasks)
  br label %return
publish:
  %job = getelementptr i8, ptr %pool, i64 {JOB}
  store ptr %function, ptr %job, align 8
  %arguments.at = getelementptr i8, ptr %job, i64 8
  store ptr %arguments, ptr %arguments.at, align 8
  %tasks.at = getelementptr i8, ptr %job, i64 16
  store i64 %tasks, ptr %tasks.at, align 8
  %people = add i64 %count, 1
  %ranges = mul i64 %people, {_RANGES_PER_THREAD}
  %quotient = udiv i64 %tasks, %ranges
  %none = icmp eq i64 %quotient, 0
  %range = select i1 %none, i64 1, i64 %quotient
  %range.at = getelementptr i8, ptr %job, i64 24
  store i64 %range, ptr %range.at, align 8
  %next = getelementptr i8, ptr %pool, i64 {NEXT}
  store atomic i64 0, ptr %next monotonic, align 8
  %state = getelementptr i8, ptr %pool, i64 {STATE}
  store atomic i32 {OPEN}, ptr %state release, align 4
  %epoch = atomicrmw add ptr %pool, i32 1 seq_cst, align 4
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %quiet = icmp eq i32 %asleep, 0
  br i1 %quiet, label %work, label %rouse
rouse:
  %others = sub i64 %tasks, 1
  %fewer = icmp slt i64 %others, %count
  %needed = select i1 %fewer, i64 %others, i64 %count
  %needed.32 = trunc i64 %needed to i32
  call void @xe.unpark(ptr %pool, ptr %pool, i32 %needed.32)
  br label %work
work:
  call void @xe.claim_and_run(ptr %pool)
  %had = atomicrmw and ptr %state, i32 {~OPEN} seq_cst, align 4
  %spin.at = getelementptr i8, ptr %pool, i64 {CALLER_SPIN}
  %spins = load i64, ptr %spin.at, align 8
  br label %watch
watch:
  %round = phi i64 [ 0, %work ], [ %round.next, %again ]
  %now = load atomic i32, ptr %state acquire, align 4
  %gone = icmp eq i32 %now, 0
  br i1 %gone, label %release, label %still
still:
  %round.next = add i64 %round, 1
  %patient = icmp slt i64 %round, %spins
  br i1 %patient, label %again, label %sleep
again:
  {pause_call}
  br label %watch
sleep:
  %parked = getelementptr i8, ptr %pool, i64 {CALLER_PARKED}
  store atomic i32 1, ptr %parked seq_cst, align 4
  br label %check
check:
  %left = load atomic i32, ptr %state seq_cst, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %awake, label %park
park:
  call void @xe.park(ptr %pool, ptr %state, i32 %left)
  br label %check
awake:
  store atomic i32 0, ptr %parked monotonic, align 4
  br label %release
release:
  store atomic i32 0, ptr %busy release, align 4
  br label %return
return:
  ret void
}}
"""


def _now_text(clock: int) -> str:
    return f"""
declare i32 @clock_gettime(i32, ptr)

define i64 @xe.now_ns() nounwind {{
  %time = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %ns = add i64 %scaled, %rest
  ret i64 %ns
}}
"""
