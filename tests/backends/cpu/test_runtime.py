"""The worker pool: every task runs exactly once, whoever calls and however often."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from compiler.backends.cpu.jit import Library, ModuleCompiler
from compiler.backends.cpu.runtime import NativeRuntime, Pool
from compiler.backends.cpu.target import detect

# @count adds 1 to the counter of each task; @nested runs @count over 10 tasks for each of its own; @slow
# spins first.
_TASKS = """
declare void @xe.parallel_for(ptr, ptr, ptr, i64)

define void @count(ptr %counters, i64 %begin, i64 %end) {
entry:
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %counters, i64 %i
  %old = atomicrmw add ptr %at, i64 1 monotonic, align 8
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define void @nested(ptr %arguments, i64 %begin, i64 %end) {
entry:
  %pool = load ptr, ptr %arguments
  %counters.at = getelementptr ptr, ptr %arguments, i64 1
  %counters = load ptr, ptr %counters.at
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  call void @xe.parallel_for(ptr %pool, ptr @count, ptr %counters, i64 10)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define void @slow(ptr %counters, i64 %begin, i64 %end) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = load volatile i64, ptr %counters
  %next = add i64 %i, 1
  %more = icmp slt i64 %i, 200000
  br i1 %more, label %head, label %done
done:
  call void @count(ptr %counters, i64 %begin, i64 %end)
  ret void
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["native", "portable"])
def runtime(request: pytest.FixtureRequest) -> NativeRuntime:
    return NativeRuntime(ModuleCompiler(detect()), portable=request.param)


@pytest.fixture(scope="module")
def tasks(runtime: NativeRuntime) -> Library:
    return ModuleCompiler(detect()).load(_TASKS, imports=runtime.symbols)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_task_runs_once(runtime: NativeRuntime, tasks: Library, threads: int) -> None:
    with Pool(runtime, threads) as pool:
        assert pool.threads == threads
        assert (pool.address == 0) == (threads == 1)
        for count in [0, 1, 2, 3, 7, 64, 1000, 12345]:
            counters = np.zeros(max(count, 1), np.int64)
            for _ in range(3):
                pool.run(tasks.address("count"), counters.ctypes.data, count)
            assert (counters[:count] == 3).all()


def test_many_jobs_back_to_back(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros(17, np.int64)
    with Pool(runtime, 4) as pool:
        for _ in range(5000):
            pool.run(tasks.address("count"), counters.ctypes.data, 17)
    assert (counters == 5000).all()


def test_workers_that_fell_asleep_are_woken(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros(8, np.int64)
    with Pool(runtime, 4) as pool:
        for _ in range(20):
            time.sleep(0.003)
            pool.run(tasks.address("slow"), counters.ctypes.data, 8)
    assert (counters == 20).all()


def test_idle_workers_use_no_processor_time(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros(8, np.int64)
    with Pool(runtime, 4) as pool:
        pool.run(tasks.address("count"), counters.ctypes.data, 8)
        time.sleep(0.02)
        before = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - before < 0.1


def test_a_call_from_inside_a_task_runs_inline(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros(10, np.int64)
    with Pool(runtime, 3) as pool:
        arguments = (ctypes.c_void_p * 2)(pool.address, counters.ctypes.data)
        pool.run(tasks.address("nested"), ctypes.addressof(arguments), 100)
    assert (counters == 100).all()


def test_several_python_threads_share_a_pool(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros((4, 33), np.int64)
    with Pool(runtime, 3) as pool:

        def caller(row: int) -> None:
            for _ in range(500):
                pool.run(tasks.address("count"), counters[row].ctypes.data, 33)

        callers = [threading.Thread(target=caller, args=(row,)) for row in range(4)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
    assert (counters == 500).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_threads_of_its_own(runtime: NativeRuntime, tasks: Library) -> None:
    counters = np.zeros(9, np.int64)
    with Pool(runtime, 3) as pool:
        pool.run(tasks.address("count"), counters.ctypes.data, 9)
        child = os.fork()
        if child == 0:
            pool.run(tasks.address("count"), counters.ctypes.data, 9)
            right = bool((counters == 2).all()) and pool.threads == 3
            pool.close()
            os._exit(0 if right else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        pool.run(tasks.address("count"), counters.ctypes.data, 9)
    assert (counters == 2).all()


def test_a_closed_pool_still_runs_tasks_on_the_caller(runtime: NativeRuntime, tasks: Library) -> None:
    pool = Pool(runtime, 2)
    pool.close()
    pool.close()
    counters = np.zeros(5, np.int64)
    pool.run(tasks.address("count"), counters.ctypes.data, 5)
    assert (counters == 1).all()
    with pytest.raises(ValueError, match="at least one thread"):
        Pool(runtime, 0)


def test_the_clock_is_monotonic_and_counts_nanoseconds(runtime: NativeRuntime) -> None:
    before, reference = runtime.now_ns(), time.monotonic_ns()
    time.sleep(0.01)
    after = runtime.now_ns()
    assert after - before >= 10_000_000
    assert abs(before - reference) < 1_000_000_000
