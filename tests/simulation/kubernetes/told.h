// What a controller's watches have told it of a simulated cluster.
#pragma once

#include <vector>

#include "controller/platform/kubernetes/rounds.h"

namespace siding::simulation::pods {

struct Told {
  kubernetes::Objects nodes, pods, budgets;
  void Take(const kubernetes::Mail& mail) {
    Take(mail.nodes, nodes);
    Take(mail.pods, pods);
    Take(mail.budgets, budgets);
  }

 private:
  static void Take(const std::vector<kubernetes::ObjectChange>& changes, kubernetes::Objects& objects) {
    for (const kubernetes::ObjectChange& change : changes) {
      if (change.after) {
        objects.insert_or_assign(change.after->name, *change.after);
      } else {
        objects.erase(change.before->name);
      }
    }
  }
};

}  // namespace siding::simulation::pods
