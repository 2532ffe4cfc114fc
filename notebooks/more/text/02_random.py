# %% [markdown]
# # 02 more · Random numbers without a state
#
# **In this notebook you compute number one million of a random sequence without the numbers before it.**
#
# It needs notebook 02: `kernel`, `Plan`, `launch`. It takes `levels_more/kernels/random.py` apart.

# %%
from course import build
from course.reader.figures import page

build.watch("more/02_random")

# %%
import numpy as np

from levels_more.hardware import pool
from levels_more.kernels import launch
from levels_more.kernels import random as random_numbers
from levels_more.kernels.random import philox

cpu = pool()["cpu:0"]

# %% [markdown]
# ## A counter and a key (10 min)
#
# Many generators compute each number from the one before. If threads share such a generator, the numbers change with
# the number of threads. A *counter-based* generator has no such state. It mixes a counter with a key until neither can
# be recognised. So number one million can be computed without the numbers before it. Philox ([Salmon et al.,
# 2011](https://doi.org/10.1145/2063384.2063405)) makes four words of 32 bits from a counter of four words and a key of
# two. TensorFlow, PyTorch on GPUs and NumPy offer it, and JAX offers a related one. (`MIX` and `STEP` are constants of
# the paper, `HIGH` is 32, and `LOW` keeps the lower 32 bits.)

# %%
page.source(random_numbers.philox)

# %% [markdown]
# The authors of the paper publish [test vectors](https://github.com/DEShawResearch/random123). Here is one:

# %%
words = philox(*map(np.uint64, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)))
print(*(f"{word:08x}" for word in words))
assert words == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)

# %% [markdown]
# Four words make two numbers of 64 bits. The upper 53 bits of each, read as a fraction, are a uniform float64. Two
# uniform numbers make two normal ones ([Box and Muller, 1958](https://doi.org/10.1214/aoms/1177706645)): one gives the
# radius of a point, the other its angle, and the point's two coordinates are the normal numbers.

# %%
page.source(random_numbers.two_uniform, random_numbers.cos_sin)

# %% [markdown]
# A launch reads the key and the counter from a buffer, the *state*.

# %%
page.source(random_numbers.plan_random, random_numbers.uniform, random_numbers.normal, random_numbers.random_normal)

# %% [markdown]
# The same state gives the same numbers. Of a million and two numbers, we now compute the last two without the others.
# Each counter makes two numbers, so 500,000 counters come before them.

# %%
many = launch("random_normal", None, cpu.put(np.array([2026, 0])), shape=(1_000_002,)).numpy()
two = launch("random_normal", None, cpu.put(np.array([2026, 500_000])), shape=(2,)).numpy()
print(two, many[-2:] == two)
