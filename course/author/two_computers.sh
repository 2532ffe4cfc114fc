#!/usr/bin/env bash
# Two computers, as far as MPI can see: two network namespaces with a link of their own, and a rank in each. Run as root on
# Linux, with the environment of `python3 -m course setup`; outside CI. It trains the rings on both, compares the digest of
# the weights with that of one process, then starts once more, cuts the link, and shows what is said.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$PWD/.venv/bin/python
mpiexec=$PWD/.venv/bin/mpiexec
scratch=$(mktemp -d)

clean_up() {
    for name in computer-a computer-b; do
        ip netns pids "$name" 2>/dev/null | xargs --no-run-if-empty kill -9
    done
    ip netns delete computer-a 2>/dev/null || true
    ip netns delete computer-b 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT

ip netns add computer-a
ip netns add computer-b
ip link add link-a netns computer-a type veth peer name link-b netns computer-b
for side in a b; do
    ip -n "computer-$side" link set lo up
    ip -n "computer-$side" link set "link-$side" up
done
ip -n computer-a address add 10.77.0.1/24 dev link-a
ip -n computer-b address add 10.77.0.2/24 dev link-b

# What mpiexec calls in the place of ssh: the options, the host, and the command.
cat >"$scratch/shell" <<'SHELL'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
case $1 in
10.77.0.1) name=computer-a ;;
10.77.0.2) name=computer-b ;;
esac
shift
exec ip netns exec "$name" unshare --uts bash -c 'hostname "$0"; eval "$1"' "$name" "$*"
SHELL
chmod +x "$scratch/shell"

cat >"$scratch/train.py" <<'PYTHON'
import hashlib
import os
import socket
import sys
import time

from course.reader.tasks import rings
from levels_more.distributed import DistributedDataParallel, world
from levels_more.high_level import Callback, Sequential
from levels_more.mid_level import Adam, Dense


class Told(Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, flush=True)


task = rings()
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2), "float64")
net.set_weights(task.weights)
net.compile(Adam(0.01), "binary_crossentropy")
epochs = int(sys.argv[1])
model = DistributedDataParallel(net, timeout=10)
model.fit(task.x, task.y, batch_size=100, epochs=epochs, seed=7, verbose=0, callbacks=[Told()] if epochs > 9 else [])
digest = hashlib.sha256(b"".join(w.tobytes() for w in net.get_weights())).hexdigest()[:16]
print(f"rank {world().rank} of {world().size} on {socket.gethostname()}: {digest}", flush=True)
PYTHON

export PYTHONPATH=$PWD NUMBA_NUM_THREADS=1
export MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self FI_PROVIDER=tcp # or MPI would find that both share a memory
over_both() {
    ip netns exec computer-a "$mpiexec" -launcher ssh -launcher-exec "$scratch/shell" \
        -hosts 10.77.0.1,10.77.0.2 -ppn 1 -n 2 "$python" "$scratch/train.py" "$@"
}

echo "One process:"
"$python" "$scratch/train.py" 3
echo "Two computers:"
over_both 3
sent=$(ip -n computer-a -statistics link show link-a | awk '/TX:/ { getline; print $1 }')
echo "bytes that computer-a has sent over the link: $sent"
echo "Two computers, and the link is cut after the first epochs:"
over_both 100000 >"$scratch/told" 2>&1 &
running=$!
until grep -q "epoch 2" "$scratch/told"; do sleep 0.2; done
ip -n computer-a link set link-a down
for _ in $(seq 40); do
    if grep -q "has waited" "$scratch/told"; then break; fi
    sleep 1
done
grep -v "^epoch" "$scratch/told" | head -n 12 || true
sleep 5
if kill -0 "$running" 2>/dev/null; then
    echo "mpiexec itself still waits for the other computer: it is ended"
fi
