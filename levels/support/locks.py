"""What is made when it is first used is made by one thread, while the others wait for it."""

import threading

# Held by whoever makes what an object needs on its first use: a plan its program, a layer its variables. One lock
# serves them all, so that no two threads can wait for each other; what is made may make more in turn.
MAKING = threading.RLock()
