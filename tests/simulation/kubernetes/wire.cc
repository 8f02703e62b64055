#include "tests/simulation/kubernetes/wire.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/fake/fake_answers.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

bool SharedPacer::Pause(Duration pause, std::stop_token stop) {
  lab_.timeline.RunUntil(lab_.timeline.Now() + pause, [&] { return stop.stop_requested(); });
  return !stop.stop_requested();
}

bool Wire::Pass(Duration time, const std::stop_token& stop) {
  if (at_once_) return !stop.stop_requested();
  return ends_.pacer.Pause(time, stop);
}

void Wire::Note(const HttpRequest& request, const std::string& what) {
  ends_.lab.trace(ends_.who, ToString(request.method), " ", request.path, ": ", what);
}

std::optional<absl::StatusOr<HttpResponse>> Wire::Instead(bool change) {
  Random& random = ends_.lab.random;
  const CallOdds& odds = ends_.network.odds;
  if (random.Chance(odds.unreachable)) return absl::UnavailableError("connection refused");
  if (random.Chance(odds.refused))
    return kubernetes::Refuse(random.OneOf(std::vector{500, 503}), "InternalError", "as the world wants it");
  if (random.Chance(odds.busy)) {
    HttpResponse response = kubernetes::Refuse(429, "TooManyRequests", "as the world wants it");
    if (random.Chance(0.5)) response.headers["retry-after"] = absl::StrCat(random.Between(1, 3));
    return response;
  }
  if (change && random.Chance(odds.conflict))
    return kubernetes::Refuse(409, "Conflict", "as the world wants it");
  return std::nullopt;
}

absl::StatusOr<HttpResponse> Wire::Send(const HttpRequest& request, std::stop_token stop) {
  const absl::Status dead = absl::CancelledError("stopped");
  Random& random = ends_.lab.random;
  const CallOdds& odds = ends_.network.odds;
  const bool change = request.method != HttpMethod::kGet;
  const Duration latency = ends_.network.latency;
  if (stop.stop_requested()) return dead;
  const Time sent = ends_.lab.timeline.Now();
  if (change && random.Chance(odds.dies_before)) {
    Note(request, "dies before it is sent");
    die_();
    return dead;
  }
  // What is on its way arrives, whatever becomes of the sender.
  const bool lives = Pass(random.Between(Duration(0), latency), stop);
  if (auto instead = Instead(change)) {
    Note(request, instead->ok() ? absl::StrCat((*instead)->code, " at random")
                                : std::string(instead->status().message()));
    return *std::move(instead);
  }
  HttpResponse response = ends_.audit.Ask(request, {*ends_.told, sent});
  if (change) Note(request, absl::StrCat(response.code, " ", request.body));
  if (!lives) return dead;
  if (change && random.Chance(odds.dies_after)) {
    Note(request, "dies before the answer");
    die_();
    return dead;
  }
  if (random.Chance(odds.answer_lost)) {
    Note(request, "the answer is lost");
    return absl::UnavailableError("connection reset");
  }
  if (random.Chance(odds.slow)) {
    const Duration takes = random.Between(500ms, 40s);
    Note(request, absl::StrCat("takes ", ToSeconds(takes), " s"));
    if (!Pass(std::min(takes, request.limit), stop)) return dead;
    if (takes > request.limit) return absl::DeadlineExceededError("no answer in time");
    return response;
  }
  if (!Pass(random.Between(Duration(0), latency), stop)) return dead;
  return response;
}

absl::StatusOr<HttpResponse> Wire::Stream(const HttpRequest& request, const kubernetes::LineReader& reader,
                                          std::stop_token stop) {
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  Lab& lab = ends_.lab;
  Random& random = lab.random;
  const CallOdds& odds = ends_.network.odds;
  if (auto instead = Instead(false)) return *std::move(instead);
  if (random.Chance(odds.gone)) return kubernetes::Refuse(410, "Expired", "too old");
  Time& held = ends_.network.held_until[request.path];
  if (random.Chance(odds.held)) held = lab.timeline.Now() + random.Between(1s, 20s);
  if (lab.timeline.Now() < held) return HttpResponse{200, {}, ""};
  kubernetes::FakeApiServer::Watched watched = ends_.cluster.Watch(request);
  if (watched.response.code != 200) {
    Note(request, TargetOf(request));
    return watched.response;
  }
  std::vector<std::string>& lines = watched.lines;
  if (!watched.ended && random.Chance(0.5)) lines.push_back(ends_.cluster.Bookmark(request));
  if (random.Chance(odds.twice) && !lines.empty()) {
    if (random.Chance(0.5)) {  // as from a server that has told an older part already
      const std::vector<std::string> again = lines;
      lines.insert(lines.end(), again.begin() + random.Below(static_cast<int>(again.size())), again.end());
    } else {
      for (size_t i = 0; i < lines.size(); i += 2) lines.insert(lines.begin() + i, lines[i]);
    }
  }
  size_t count = lines.size();
  const bool cut = random.Chance(odds.cut);
  if (cut) count = static_cast<size_t>(random.Below(static_cast<int>(count) + 1));
  for (size_t i = 0; i < count; ++i) {
    if (!reader(lines[i])) return HttpResponse{200, {}, ""};
  }
  if (cut) return absl::UnavailableError("connection reset");
  if (!watched.ended && random.Chance(odds.expired))
    reader(kubernetes::WriteJson(
        {{"type", "ERROR"}, {"object", kubernetes::FakeStatus(410, "Expired", "too old")}}));
  return HttpResponse{200, {}, ""};
}

}  // namespace siding::simulation::pods
