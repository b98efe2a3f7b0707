"""Names kernels after their text, so that equal ones are compiled once."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from compiler.backends.cpu.kernel_code import KernelCode, SharedFunction

PLACEHOLDER = "xe.kernel.name"


def named_after_text(kind: str, code: KernelCode) -> KernelCode:
    """A kernel emitted under the placeholder's name, renamed (also where its shared functions carry the name)."""
    own = [
        function for function in code.shared if PLACEHOLDER in function.name or PLACEHOLDER in function.text
    ]
    digest = hashlib.blake2b(code.text.encode(), digest_size=8)
    for function in own:
        digest.update(function.text.encode())
    name = f"{kind}.{digest.hexdigest()}"

    def renamed(function: SharedFunction) -> SharedFunction:
        if function not in own:
            return function
        return replace(
            function,
            name=function.name.replace(PLACEHOLDER, name),
            text=function.text.replace(PLACEHOLDER, name),
        )

    return replace(
        code,
        name=name,
        text=code.text.replace(PLACEHOLDER, name),
        shared=tuple(renamed(function) for function in code.shared),
    )
