# cluster.sh: a Slurm of this machine, for tests. Source it; it needs root, slurmctld, slurmd and munged, and no systemd.
# Three nodes of this one machine, each with a slurmd of its own, two GPUs that are files, and 32 processors on paper.
# Everything is in $scratch, and every process carries SLURM_CONF=$scratch/slurm.conf in its environment: that is how
# stop_cluster finds what is left, whatever became of its parents.
nodes=(n1 n2 n3)

free_ports() { # prints a number: it and the four behind it are free
  python3 - <<'EOF'
import random, socket
while True:
    first = random.randrange(20000, 30000)
    try:
        for port in range(first, first + 5):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        continue
    print(first)
    break
EOF
}

write_config() {
  local port host
  port=$(free_ports)
  host=$(hostname -s)
  cat >"$scratch/slurm.conf" <<EOF
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool/%n
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd-%n.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SlurmdTimeout=5
SlurmctldTimeout=5
KillWait=2
MinJobAge=600
SchedulerParameters=bf_interval=1,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 3))] CPUs=32 RealMemory=1000 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
  echo "NodeName=n[1-3] Name=gpu File=$scratch/gpu[0-1]" >"$scratch/gres.conf"
}

start_cluster() {
  local node
  mkdir -p "$scratch"/{munge,state} "${nodes[@]/#/$scratch/spool/}"
  touch "$scratch"/gpu{0,1}
  chmod 711 "$scratch" # munged wants its socket to be reached by all
  head -c 128 /dev/urandom >"$scratch/munge.key"
  chmod 400 "$scratch/munge.key"
  write_config
  export SLURM_CONF=$scratch/slurm.conf
  munged --foreground --key-file="$scratch/munge.key" --socket="$scratch/munge/socket" --pid-file="$scratch/munge/pid" \
    --seed-file="$scratch/munge/seed" >"$scratch/munged.log" 2>&1 &
  wait_until 20 "munged does not answer" eval '[ -S "$scratch/munge/socket" ]'
  slurmctld -D -c >/dev/null 2>&1 &
  for node in "${nodes[@]}"; do
    slurmd -D -N "$node" >/dev/null 2>&1 &
  done
  disown -a # their end is none of the shell's business
  wait_until 60 "the nodes do not come up" eval '[ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" = "${#nodes[@]}" ]'
}

# Takes a node's power: its slurmd, and the steps that it runs, with every process in them. The processes of a job know their
# node, and share a session with the slurmstepd that watches them.
kill_node() {
  local process session
  local -a victims=()
  for process in $(of_environment "SLURM_CONF=$SLURM_CONF"); do
    if tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline" | grep -q "^slurmd -D -N $1 "; then
      victims+=("$process")
    elif grep -qazF "SLURMD_NODENAME=$1" "/proc/$process/environ" 2>/dev/null; then
      session=$(ps -o sid= -p "$process" | tr -d ' ')
      mapfile -t -O "${#victims[@]}" victims < <(ps -eo pid=,sid= | awk -v session="$session" '$2 == session { print $1 }')
    fi
  done
  [ ${#victims[@]} -gt 2 ] || fail "node $1 has no work to be killed in"
  kill -KILL "${victims[@]}" 2>/dev/null || true
}

of_environment() { # the processes that have this variable, but for this shell
  local found
  for found in $(grep -lazF -- "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
    [ "$found" = $$ ] || echo "$found"
  done
}

stop_cluster() {
  local round
  local -a left=()
  for round in 1 2 3 4 5; do
    mapfile -t left < <(of_environment "SLURM_CONF=$scratch/slurm.conf")
    [ ${#left[@]} -gt 0 ] || break
    kill -KILL "${left[@]}" 2>/dev/null || true
    sleep 0.2
  done
}

# wait_until <seconds> <what to say if not> <command>...
wait_until() {
  local until=$((SECONDS + $1)) complaint=$2
  shift 2
  while ! "$@"; do
    [ $SECONDS -lt $until ] || fail "$complaint"
    sleep 0.5
  done
}
