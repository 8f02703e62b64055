// A way to Slurm on which nothing is changed unless a guard allows it, each time: of two controllers, only
// the one that decides may act.
#pragma once

#include <functional>
#include <memory>

#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

// What the guard says against a change is the change's error. Looking is not guarded.
std::unique_ptr<Client> NewGuardedClient(std::unique_ptr<Client> client,
                                         std::function<absl::Status()> may_act);

}  // namespace siding::slurm
