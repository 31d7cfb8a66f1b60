# shellcheck shell=bash
# The set-up behind scripts/quickstart and scripts/check, which source this file and call
#
#     set_up train        # or train,dev: the extras of pyproject.toml to install
#
# It leaves a virtual environment in .venv with veriward installed from this checkout, at the versions of
# constraints.txt. A finished one is recognised and used again at once; an interrupted, moved or broken one is made
# anew. pip's own settings decide where packages come from. Whatever stops the set-up ends in one line and exit code 2.
#
# Runs on Linux and macOS, with bash 3.2 or newer.

ROOT=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
LOG=$VENV/install.log
DONE=$VENV/veriward-installed # written last: fingerprint, then extras
UNFINISHED=$VENV/veriward-unfinished
LOCK=$ROOT/.venv-lock
WANTED='Python 3.11, 3.12 or 3.13'
TAB=$'\t'
CHILD='' # the process that step waits for
LOCK_TAKEN=''
PYTHON_FOUND=''
UPDATING='' # set while packages change in an environment that was complete

say() { printf 'veriward: %s\n' "$*"; }

fail() {
    printf 'veriward: %s\n' "$*" >&2
    exit 2
}

set_up() {
    unset PYTHONPATH PYTHONHOME # another Python's packages do not belong in here
    if installed "$1"; then return; fi
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    take_lock
    if ! installed "$1"; then
        choose_environment "$1"
        install_packages "$1"
    fi
    trap - EXIT INT TERM
    clean_up
}

# --- Is there anything to do? ---

# True if the environment is complete, unchanged, and has the extras of $1.
installed() {
    [ -f "$DONE" ] && [ ! -e "$UNFINISHED" ] || return 1
    [ "$(fingerprint)" = "$(sed -n 1p "$DONE")" ] || return 1
    covers "$(sed -n 2p "$DONE")" "$1" || return 1
    python_as_asked
}

# One line, with tabs between: the environment's Python version, its folder, and a hash of what was to be installed
# (or what is missing). Nothing if the environment does not run.
fingerprint() {
    "$VENV/bin/python" -I - "$ROOT" 2>/dev/null <<'PYTHON'
import hashlib, importlib.util, pathlib, sys

files = [pathlib.Path(sys.argv[1], name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
missing = [name for name in ("torch", "trl", "veriward.rewards") if importlib.util.find_spec(name) is None]
content = f"without {missing}" if missing else hashlib.sha256(b"\0".join(files)).hexdigest()
print("%d.%d" % sys.version_info[:2], sys.prefix, content, sep="\t")
PYTHON
}

# True if the installed extras $1 hold all of $2.
covers() {
    local extra
    for extra in ${2//,/ }; do
        case ",$1," in *",$extra,"*) ;; *) return 1 ;; esac
    done
}

# True unless $PYTHON names another Python version than the environment has.
python_as_asked() {
    local asked
    [ -n "${PYTHON:-}" ] || return 0
    asked=$(probe "$PYTHON") || return 1
    case "$(fingerprint)" in "$(minor_version "$asked")$TAB"*) ;; *) return 1 ;; esac
}

# --- Which Python ---

# Prints "3.12.1 venv" or "3.12.1 no-venv" for a working Python.
probe() {
    "$1" -c '
import sys
try:
    import ensurepip, venv
    extra = "venv"
except ImportError:
    extra = "no-venv"
print("%d.%d.%d %s" % (tuple(sys.version_info[:3]) + (extra,)))' 2>/dev/null </dev/null
}

minor_version() { printf '%s\n' "$1" | cut -d . -f 1,2; }

supported() {
    case "$1" in 3.11.* | 3.12.* | 3.13.*) ;; *) return 1 ;; esac
}

# Sets PYTHON_FOUND to the first fitting Python, or says what was found and ends.
find_python() {
    local name answer seen='' without_venv='' names=(python3 python3.13 python3.12 python3.11)
    if [ -n "${PYTHON:-}" ]; then names=("$PYTHON"); fi
    for name in "${names[@]}"; do
        if ! command -v "$name" >/dev/null; then
            answer='not found'
        elif ! answer=$(probe "$name"); then
            answer='does not run'
        elif ! supported "$answer"; then
            answer=${answer% *}
        elif [ "${answer#* }" = no-venv ]; then
            without_venv=${without_venv:-"$name (Python ${answer% *})"}
            answer="${answer% *} without venv"
        else
            PYTHON_FOUND=$name
            say "Python ${answer% *} ($(command -v "$name"))"
            return
        fi
        seen="${seen:+$seen; }$name: $answer"
    done
    if [ -n "$without_venv" ]; then
        fail "$without_venv cannot make virtual environments: its venv or ensurepip module is missing." \
            "Install it (Debian and Ubuntu: apt install python3-venv) and start again."
    fi
    fail "no fitting Python ($seen). Wanted: $WANTED." \
        "Install one, or name one: PYTHON=/path/to/python3.12 bash scripts/${0##*/}"
}

# --- Which environment ---

# Leaves a working environment in $VENV, with a word on why if it is not simply new.
choose_environment() {
    local known now
    if [ ! -e "$VENV" ] && [ ! -L "$VENV" ]; then
        make_environment
    elif [ -e "$UNFINISHED" ]; then
        say "the last installation did not finish; making .venv again"
        make_environment
    elif [ ! -f "$DONE" ]; then
        adopt_environment
    else
        known=$(sed -n 1p "$DONE")
        now=$(fingerprint) || true
        if [ "${known%"$TAB"*}" != "${now%"$TAB"*}" ]; then
            say ".venv does not work any more (its Python is gone, or the folder was moved); making it again"
            make_environment
        elif ! python_as_asked; then
            say ".venv has Python ${now%%"$TAB"*}, not $PYTHON; making it again"
            make_environment
        elif ! covers "$(sed -n 2p "$DONE")" "$1"; then
            say "adding what [$1] needs to .venv"
        elif [ "${now#*"$TAB"without}" != "$now" ]; then
            say "packages are missing from .venv; installing them again"
        else
            say "pyproject.toml or constraints.txt has changed; bringing .venv up to date"
        fi
    fi
}

make_environment() {
    find_python
    rm -rf -- "$VENV"
    need_disk 2500
    mkdir -p -- "$VENV"
    : >"$UNFINISHED"
    step 'virtual environment in .venv' "$PYTHON_FOUND" -m venv "$VENV"
}

# An environment that somebody else made is used if it fits, and never removed.
adopt_environment() {
    local answer
    answer=$(probe "$VENV/bin/python") || answer='no Python that runs'
    if ! supported "$answer"; then
        fail "$VENV was not made by this command and has ${answer% *}. Wanted: $WANTED." \
            "Rename or remove it, and start again."
    fi
    if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        fail "$VENV was not made by this command and has no pip. Rename or remove it, and start again."
    fi
    say "installing into the .venv that is there (Python ${answer% *})"
}

# --- The installation ---

install_packages() {
    local extras=$1
    if [ -f "$DONE" ] && covers "$(sed -n 2p "$DONE")" "$1"; then extras=$(sed -n 2p "$DONE"); fi
    # An environment of ours that is not finished is made anew next time; one that somebody else made is never marked.
    if [ -f "$DONE" ]; then mv -- "$DONE" "$UNFINISHED" && UPDATING=yes; fi
    # Large wheels are unpacked here: /tmp is often a small memory disk, and leftovers go with .venv.
    mkdir -p -- "$VENV/tmp"
    if ! pinned pip setuptools; then step 'pip and setuptools' pip_install pip setuptools; fi
    if ! pinned torch; then announce_torch; fi
    step "veriward[$extras] and its packages" pip_install --no-build-isolation --editable ".[$extras]"
    rm -rf -- "$VENV/tmp"
    { fingerprint && printf '%s\n' "$extras"; } >"$DONE"
    rm -f -- "$UNFINISHED"
}

pip_install() {
    cd -- "$ROOT" || exit
    export PIP_USER=0 TMPDIR="${TMPDIR:-$VENV/tmp}" # for pip alone: the folder is gone afterwards
    exec "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
        --constraint constraints.txt "$@"
}

# True if the environment has the packages at the versions of constraints.txt, whatever the build.
pinned() {
    "$VENV/bin/python" -I - "$ROOT/constraints.txt" "$@" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

pins = dict(line.strip().split("==") for line in open(sys.argv[1]) if "==" in line and not line.startswith("#"))
sys.exit(any(version(name).split("+")[0] != pins[name] for name in sys.argv[2:]))
PYTHON
}

# Says which torch pip will take from its index, how large it is, and what else could be had.
announce_torch() {
    # fast-deps reads a wheel's metadata without fetching the wheel, where the index allows it.
    step 'asking the package index for torch' pip_install --dry-run --ignore-installed --quiet \
        --use-feature=fast-deps --report "$VENV/torch.json" "$(grep "^torch==" "$ROOT/constraints.txt")"
    "$VENV/bin/python" -I "$ROOT/scripts/torch_download.py" "$VENV/torch.json" "$(gpu_name)" >"$VENV/torch.txt"
    sed 1d "$VENV/torch.txt" | while IFS= read -r line; do say "$line"; done
    need_disk "$(sed -n 1p "$VENV/torch.txt")"
}

# The first NVIDIA GPU by name; nothing if there is none.
gpu_name() {
    local name=''
    if command -v nvidia-smi >/dev/null; then
        name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null </dev/null | sed -n 1p) || name=''
    fi
    if [ -z "$name" ] && [ -e /proc/driver/nvidia/version ] && [ -e /dev/nvidia0 ]; then name='NVIDIA GPU'; fi
    case "$name" in *[Ff]ailed* | *'No devices'*) name='' ;; esac
    printf '%s\n' "$name"
}

# --- Running a step ---

# Runs a command with its output in the log; shows seconds, and pip's latest line if it takes long.
step() {
    local label=$1 started=$SECONDS log_start code seconds shown=0
    shift
    printf '\n== %s\n' "$label" >>"$LOG" || true # a full disk is explained below
    log_start=$(wc -c <"$LOG")
    "$@" >>"$LOG" 2>&1 </dev/null &
    CHILD=$!
    while kill -0 "$CHILD" 2>/dev/null; do
        sleep 0.2
        seconds=$((SECONDS - started))
        if [ -t 1 ]; then
            printf '\r\033[K  %s  %s s  %s' "$label" "$seconds" "$(latest | cut -c 1-50)"
        elif [ "$seconds" -ge $((shown + 30)) ]; then
            shown=$seconds
            printf '  %s: %s s so far; %s\n' "$label" "$seconds" "$(latest | cut -c 1-80)"
        fi
    done
    wait "$CHILD" && code=0 || code=$?
    CHILD=''
    if [ -t 1 ]; then printf '\r\033[K'; fi
    if [ "$code" -ne 0 ]; then explain_failure "$label" "$((log_start + 1))"; fi
    printf '  %s  %s s\n' "$label" "$((SECONDS - started))"
}

# What is going on: the last line of the log, or a count while pip unpacks without a word.
latest() {
    local line
    line=$(tail -n 1 "$LOG")
    case "$line" in
    'Installing collected packages'*)
        line=$(find "$VENV"/lib/*/site-packages -maxdepth 1 -name '*.dist-info' | grep -c .)
        printf '%s packages are in place\n' "$line"
        ;;
    *) printf '%s\n' "$line" ;;
    esac
}

NO_CONNECTION='NewConnectionError|NameResolutionError|name resolution|Failed to establish|Could not fetch URL'
NO_CONNECTION=$NO_CONNECTION'|ProxyError|ConnectionError|Connect(ion)?TimeoutError|ReadTimeoutError|Read timed out'
NO_CONNECTION=$NO_CONNECTION'|Connection (refused|reset|aborted)'

# One line on why the step $1 failed, read from the log from byte $2 on.
explain_failure() {
    local new missing
    # pip took its changes back, so the environment is as complete as it was before.
    if [ -n "$UPDATING" ]; then mv -- "$UNFINISHED" "$DONE"; fi
    new=$(tail -c "+$2" "$LOG")
    if says "$new" 'No space left on device|Errno 28|Disk quota exceeded' || [ "$(free_mb)" -lt 20 ]; then
        fail "$1: the disk is full (of $ROOT, or of pip's temporary folder). Free some space" \
            "(pip's downloads: python3 -m pip cache purge) and start again. Log: $LOG"
    fi
    if says "$new" 'CERTIFICATE_VERIFY_FAILED|SSLError|SSL module is not available'; then
        fail "$1: the package index could not be reached safely (certificate or TLS)." \
            "Set pip's PIP_CERT or use a Python with ssl, and start again. Log: $LOG"
    fi
    if says "$new" "$NO_CONNECTION"; then
        fail "$1: the package index could not be reached. Check the network, or pip's settings" \
            "(PIP_INDEX_URL, PIP_PROXY; python3 -m pip config list), and start again. Log: $LOG"
    fi
    missing=$(sed -n -E 's/^ERROR: (No matching distribution found for|Cannot install) //p' <<<"$new" | sed -n 1p)
    if [ -n "$missing" ]; then
        fail "$1: pip's index lacks what constraints.txt asks for on this Python and system ($(uname -sm)): $missing." \
            "See pip's settings (python3 -m pip config list). Log: $LOG"
    fi
    printf '%s\n' "$new" | tail -n 8 >&2
    fail "$1: failed; the last lines are above. Log: $LOG"
}

says() { printf '%s\n' "$1" | grep -q -E "$2"; }

# --- Disk ---

# Free megabytes for the checkout; a large number where df cannot say.
free_mb() {
    local kilobytes
    kilobytes=$(df -Pk "$ROOT" 2>/dev/null | sed -n -E '2s/^.* ([0-9]+) +[0-9]+ +(-?[0-9]+) +[0-9]+% .*$/\2/p')
    printf '%s\n' $((${kilobytes:-1000000000} / 1024))
}

need_disk() {
    local free
    free=$(free_mb)
    if [ "$free" -ge "$1" ]; then return; fi
    fail "too little disk: $free MB free for $ROOT, wanted $1 MB for the installation." \
        "Free some space (pip's downloads: python3 -m pip cache purge) or move the checkout, and start again."
}

# --- One set-up at a time ---

take_lock() {
    local owner waiting=''
    while ! mkdir -- "$LOCK" 2>/dev/null; do
        if [ ! -w "$ROOT" ]; then
            fail "$ROOT cannot be written to. Make it writable, or copy the checkout, and start again."
        fi
        owner=$(cat -- "$LOCK/pid" 2>/dev/null) || owner=''
        if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
            rm -rf -- "$LOCK"
        else
            if [ -z "$waiting" ]; then
                say "waiting for another set-up in this folder (process ${owner:-unknown}; if there is none," \
                    "remove $LOCK)"
            fi
            waiting=yes
            sleep 1
        fi
    done
    LOCK_TAKEN=yes
    printf '%s\n' "$$" >"$LOCK/pid"
}

clean_up() {
    if [ -n "$CHILD" ]; then kill "$CHILD" 2>/dev/null || true; fi
    if [ -n "$LOCK_TAKEN" ]; then rm -rf -- "$LOCK"; fi
    CHILD='' LOCK_TAKEN=''
}
