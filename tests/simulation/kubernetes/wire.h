// The way from a controller to the simulated API server: calls take their time, in which others go on, and go
// wrong in all the ways in which HTTP does.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "controller/platform/kubernetes/client/pacer.h"
#include "controller/platform/kubernetes/client/transport.h"
#include "tests/simulation/kubernetes/audit.h"

namespace siding::simulation::pods {

// How likely each fault is.
struct CallOdds {
  // Of each call.
  double unreachable = 0;  // nothing is done
  double refused = 0;      // 500 or 503, and nothing is done
  double busy = 0;         // 429, with or without a Retry-After
  double answer_lost = 0;  // it is done, and nobody hears so
  double slow = 0;         // it is done, and the answer comes late or too late
  // Of each call that changes something.
  double conflict = 0;  // 409, and nothing is done
  double dies_before = 0;
  double dies_after = 0;
  // Of each watch.
  double cut = 0;      // after some lines
  double expired = 0;  // 410 in an event
  double gone = 0;     // 410 as an answer
  double twice = 0;    // lines come again, one by one or all of them
  double held = 0;     // nothing is told for a while, of this resource only
};

// What all of a world's calls have in common.
struct Network {
  CallOdds odds;
  Duration latency{0};                     // at most, each way
  std::map<std::string, Time> held_until;  // by path: watches tell nothing
};

// A pause takes its time, in which others go on.
class SharedPacer final : public kubernetes::Pacer {
 public:
  explicit SharedPacer(Lab& lab) : lab_(lab) {}
  Time Now() const override { return lab_.timeline.Now(); }
  bool Pause(Duration pause, std::stop_token stop) override;

 private:
  Lab& lab_;
};

// Not thread-safe.
class Wire final : public kubernetes::Transport {
 public:
  struct Ends {
    Lab& lab;
    Cluster& cluster;
    Audit& audit;
    Network& network;
    kubernetes::Pacer& pacer;
    std::string who;
    const Told* told;  // before its present round
  };
  // `at_once`: calls take no time: for who would otherwise wait side by side with others. `die`: the
  // controller does, at this moment.
  Wire(const Ends& ends, bool at_once, std::function<void()> die)
      : ends_(ends), at_once_(at_once), die_(std::move(die)) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const kubernetes::LineReader& reader,
                                      std::stop_token stop) override;

 private:
  // False: the caller is dead.
  bool Pass(Duration time, const std::stop_token& stop);
  // Instead of asking the server; nothing: it is asked.
  std::optional<absl::StatusOr<HttpResponse>> Instead(bool change);
  void Note(const HttpRequest& request, const std::string& what);

  const Ends ends_;
  const bool at_once_;
  const std::function<void()> die_;
};

}  // namespace siding::simulation::pods
