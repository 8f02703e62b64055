// Certificates that are about to expire, the controller's and the agents': an event says so a month and a
// week before, and when one has expired. A node whose certificate has can dial no more.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/expiry.h"
#include "controller/engine/state/context.h"

namespace siding {

class Expiries {
 public:
  explicit Expiries(const Context& c) : state_(c.state), clock_(c.clock), recorder_(c.recorder) {}

  void set_own(std::optional<Time> ends) { own_ = ends; }
  std::optional<Time> own() const { return own_; }

  // To be called now and then. A new controller tells it again.
  void Tell();

 private:
  void Tell(const std::string& whose, Time ends);

  const ClusterState& state_;
  const Clock& clock_;
  Recorder& recorder_;
  std::optional<Time> own_;
  struct Told {
    Time ends;
    Expiry near = Expiry::kFar;
    Time at;
  };
  std::map<std::string, Told> told_;  // by whose it is
};

}  // namespace siding
