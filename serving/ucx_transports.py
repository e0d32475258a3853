"""What a value of UCX_TLS lets UCX use: the one reader of that variable's grammar.

ucx: ucp_context.c, ucp_tl_aliases and ucp_is_resource_in_transports_list (1.22): names and aliases with commas between,
`all`, and `^` in front for everything but these. `name:aux` allows a transport for setting up connections only.
"""

TCP = frozenset({"tcp"})
RDMA = frozenset({"rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5", "dc_mlx5"})
SHARED_MEMORY = frozenset({"posix", "sysv", "xpmem", "knem", "cma"})
# Within a node. UCX reads another process's memory through the kernel (cma) wherever it may: on the CPU runtime with
# UCX_TLS=tcp,sm,self its own table says `remote memory read by ucp_get … zero-copy | cma/memory` (UCX_PROTO_INFO=y,
# two NIXL agents on one host).
WITHIN_NODE = SHARED_MEMORY | {"rocm_ipc", "cuda_ipc"}
_GPU = frozenset({"rocm_copy", "rocm_ipc", "rocm_gdr", "cuda_copy", "cuda_ipc", "gdr_copy"})
ALL = TCP | RDMA | WITHIN_NODE | _GPU

_ALIASES: dict[str, frozenset[str]] = {
    "all": ALL,
    "ib": RDMA,
    "rc": frozenset({"rc_verbs", "rc_mlx5"}),
    "rc_v": frozenset({"rc_verbs"}),
    "rc_x": frozenset({"rc_mlx5"}),
    "ud": frozenset({"ud_verbs", "ud_mlx5"}),
    "ud_v": frozenset({"ud_verbs"}),
    "ud_x": frozenset({"ud_mlx5"}),
    "dc": frozenset({"dc_mlx5"}),
    "dc_x": frozenset({"dc_mlx5"}),
    "sm": SHARED_MEMORY,
    "shm": SHARED_MEMORY,
    "mm": frozenset({"posix", "sysv", "xpmem"}),
    "rocm": frozenset({"rocm_copy", "rocm_ipc", "rocm_gdr"}),
    "cuda": frozenset({"cuda_copy", "cuda_ipc", "gdr_copy"}),
}


def allowed(ucx_tls: str) -> frozenset[str]:
    """Transports, without aliases, of those known here that UCX may use.

    In doubt a transport counts as allowed, since what is asked is whether one is excluded: with blanks around its name,
    which UCX need not understand, and for connections only.
    """
    listed = ucx_tls.strip()
    but = listed.startswith("^")
    named: set[str] = set()
    for entry in listed.removeprefix("^").split(","):
        name, _, auxiliary = entry.strip().removeprefix("\\").partition(":")  # `\` asks for the name and no alias
        if not (but and auxiliary):
            named |= _ALIASES.get(name, {name})
    return ALL - named if but else ALL & named
