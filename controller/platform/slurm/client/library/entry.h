// What a shared object that speaks to one version of Slurm shows to siding. It is built with siding and used
// by the same build only: `siding_version` says so.
#pragma once

#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

inline constexpr char kEntryName[] = "siding_slurm_open";
// A new client, owned by the caller. nullptr: it was built for another siding. (That libslurm is of the right
// version its soname sees to: every version of Slurm has its own.)
using Entry = Client* (*)(const char* siding_version);

}  // namespace siding::slurm
