"""How a thread of the runtime waits: LLVM IR text of pause, park and unpark, by operating system.

``@xe.park(pool, word, expected)`` sleeps as long as ``word`` holds ``expected``; it may return early, so
callers look again. ``@xe.unpark(pool, word, count)`` wakes up to ``count`` threads that sleep on ``word``.

On Linux that is the futex system call, reached through libc's ``syscall`` since libc has no wrapper.
Elsewhere a mutex and a condition variable in the pool stand in: all sleepers share them and look at their
own word.
"""

from __future__ import annotations

from compiler.backends.cpu.target import Target

MUTEX_OFFSET = 512
CONDITION_OFFSET = 640

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_FUTEX_WAIT_PRIVATE = 128
_FUTEX_WAKE_PRIVATE = 129

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def uses_futex(target: Target) -> bool:
    """Whether waiting goes through the futex system call on this target."""
    return target.is_linux and target.architecture in _FUTEX_NUMBER


def pause(target: Target) -> tuple[str, str]:
    """The declaration and the call that tell the processor that a thread is spinning (may be empty)."""
    return _PAUSE.get(target.architecture, ("", ""))


def waiting_text(target: Target, *, portable: bool = False) -> str:
    """The definitions of park and unpark, and of ``@xe.init_waiting(pool)``.

    Args:
        target: what to make them for.
        portable: take the mutex even where there is a futex.
    """
    if uses_futex(target) and not portable:
        return _futex_text(_FUTEX_NUMBER[target.architecture])
    return _PORTABLE


def _futex_text(number: int) -> str:
    return f"""
declare i64 @syscall(i64, ...)

define internal void @xe.init_waiting(ptr %pool) nounwind {{
  ret void
}}

define internal void @xe.park(ptr %pool, ptr %word, i32 %expected) nounwind noinline {{
  %r = call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 {_FUTEX_WAIT_PRIVATE},
                                    i32 %expected, ptr null, ptr null, i64 0)
  ret void
}}

define internal void @xe.unpark(ptr %pool, ptr %word, i32 %count) nounwind noinline {{
  %r = call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 {_FUTEX_WAKE_PRIVATE},
                                    i32 %count, ptr null, ptr null, i64 0)
  ret void
}}
"""


_PORTABLE = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal void @xe.init_waiting(ptr %pool) nounwind {{
  %mutex = getelementptr i8, ptr %pool, i64 {MUTEX_OFFSET}
  %condition = getelementptr i8, ptr %pool, i64 {CONDITION_OFFSET}
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}}

define internal void @xe.park(ptr %pool, ptr %word, i32 %expected) nounwind noinline {{
  %mutex = getelementptr i8, ptr %pool, i64 {MUTEX_OFFSET}
  %condition = getelementptr i8, ptr %pool, i64 {CONDITION_OFFSET}
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %expected
  br i1 %same, label %sleep, label %leave
sleep:
  %b = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %leave
leave:
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define internal void @xe.unpark(ptr %pool, ptr %word, i32 %count) nounwind noinline {{
  %mutex = getelementptr i8, ptr %pool, i64 {MUTEX_OFFSET}
  %condition = getelementptr i8, ptr %pool, i64 {CONDITION_OFFSET}
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}
"""
