// What an API server answers, objects in it, and kubeconfig files. The first byte says which.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "controller/platform/kubernetes/client/line_splitter.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/client/settings.h"
#include "controller/platform/kubernetes/objects/admission.h"
#include "controller/platform/kubernetes/watch/informer_state.h"
#include "controller/platform/kubernetes/watch/job_table.h"
#include "tests/fuzz/input.h"

namespace siding::kubernetes {
namespace {

using fuzz::Expect;

// What is told must follow from what was told before, whatever a server sends.
void Follow(InformerState& state, Objects& told) {
  for (const ObjectChange& change : state.TakeChanges()) {
    const ObjectName name = change.before ? change.before->name : change.after->name;
    Expect(change.before || change.after, "a change has a side");
    Expect(change.before.has_value() == (told.count(name) > 0),
           "what is gone was there, and what is new was not");
    told.erase(name);
    if (change.after) told[name] = *change.after;
  }
  Expect(told.size() == state.objects().size(), "what was told is what is known");
}

// A list, and then the lines of watches.
void Watch(const std::string& text) {
  InformerState state;
  Objects told;
  const Time now = FromMicros(1'000'000);
  state.OnWatchBegun(now);
  const LineReader read = [&](absl::string_view line) {
    if (state.Next().list) {
      auto page = PageFrom(line);
      page.ok() ? state.OnPage(*std::move(page)) : state.OnListFailed(page.status(), now);
    } else if (auto event = EventFrom(line, "watch"); event.ok()) {
      state.OnEvent(*std::move(event));
    } else {
      state.OnWatchEnded(event.status(), now);
      Expect(state.Next().not_before > now, "a failure is followed by a pause");
    }
    Follow(state, told);
    return true;
  };
  LineSplitter(read, 1 << 20).Add(text).IgnoreError();
}

void Status(const std::string& text) {
  const ApiError error = ErrorFrom(HttpResponse{409, {{"retry-after", text.substr(0, 20)}}, text});
  const absl::Status status = ToStatus(error, "get pods");
  Expect(!status.ok(), "an error is none");
  Expect(ErrorOf(status) == error, "a status keeps what the server said");
  for (const char c : status.message()) Expect(c >= ' ' && c < 127, "a message is printable");
}

// The object that the API server asks about.
void Admit(const std::string& text) {
  auto json = ParseJson(text);
  if (!json.ok()) return;
  for (const char* kind : {"Pod", "Job", "CronJob", "OnDemandRequest"}) {
    const Json review = {{"request", {{"uid", "u"}, {"kind", {{"kind", kind}}}, {"object", *json}}}};
    const auto answer = AnswerReview(review, {.saves = true}, FromMicros(1'000'000));
    Expect(answer.ok(), "a review is answered");
    const bool refused = !IsTrueAt(*answer, {"response", "allowed"});
    Expect(refused == !TextAt(*answer, {"response", "status", "message"}).empty(), "a refusal says why");
    WriteJson(*answer);
  }
  AnswerReview(*json, {}, Time{}).IgnoreError();
}

// A pod and a node of the same text: what siding makes of them is in range.
void Take(const std::string& text) {
  auto json = ParseJson(text);
  if (!json.ok()) return;
  const auto object = ObjectFrom(*std::move(json));
  if (!object.ok()) return;
  JobTable table({}, [](const Pod&) { return true; });
  table.OnNodes({{std::nullopt, *object}});
  table.OnPods({{std::nullopt, *object}});
  const ManagerChanges changes = table.TakeChanges();
  for (const ManagedJob& job : changes.jobs) {
    Expect(job.id.value() > 0 && job.starts > 0, "numbers are positive");
    Expect(job.spec.per_node.slots >= 0 && job.spec.per_node.memory >= Bytes{0}, "nothing is negative");
    Expect(std::abs(job.spec.priority) <= 1'000'000 && job.spec.name.size() <= text.size(), "it fits");
    table.NodesFor(job.spec);
  }
  for (const ManagedNode& node : changes.nodes)
    Expect(node.capacity.slots >= 0, "a node has something or nothing");
  Expect(table.Tasks().size() <= 1, "a pod is one task");
  table.OnPods({{*object, std::nullopt}});
  table.OnNodes({{*object, std::nullopt}});
  Expect(table.Jobs().empty() && table.nodes().empty(), "what is gone is gone");
}

void Read(char which, const std::string& text) {
  switch (which) {
    case 'w':
      return Watch(text);
    case 's':
      return Status(text);
    case 'o':
      Admit(text);
      return Take(text);
    case 'k':
      if (const auto settings = ParseKubeconfig(text, "/dev/null/config"); settings.ok()) {
        Expect(settings->url.rfind("https://", 0) == 0, "credentials are only sent over TLS");
        Expect(settings->certificate.empty() == settings->key.empty(), "a certificate has its key");
      }
      return;
    case 'p':
      for (const auto& name : std::vector<std::string>(absl::StrSplit(text, '/'))) {
        const auto path = PathOf(Pods(), {"space", name});
        Expect(!path.ok() || std::count(path->begin(), path->end(), '/') == 6,
               "a name is one segment of a path");
      }
      return;
    default:
      return;
  }
}

}  // namespace
}  // namespace siding::kubernetes

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0)
    siding::kubernetes::Read(static_cast<char>(data[0]), siding::fuzz::TextOf(data + 1, size - 1));
  return 0;
}
