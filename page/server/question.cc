#include "page/server/question.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "page/server/loopback.h"

namespace siding::page {
namespace {

constexpr char kRoot[] = "/api/v1/";
constexpr size_t kLongest = 256;  // of what is repeated in an answer

std::string Cut(const std::string& text) {
  return text.size() <= kLongest ? text : absl::StrCat(text.substr(0, kLongest), "...");
}

// Bytes that %XX stand for.
std::optional<std::string> Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) || !absl::ascii_isxdigit(text[i + 2]))
      return std::nullopt;
    plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return plain;
}

std::optional<int64_t> Whole(const std::string& text) {
  int64_t number = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
}

constexpr int kPortOfHttp = 80;

struct Authority {
  std::string host;  // in small letters
  int port = kPortOfHttp;

  bool IsLoopback() const { return host == "localhost" || host == "[::1]" || LoopbackOf(host).has_value(); }
};

// HOST or HOST:PORT; nothing: it is something else. The port may be another one than the server's: of a
// tunnel's beginning, or of a proxy.
std::optional<Authority> ReadAuthority(const std::string& text) {
  Authority authority{absl::AsciiStrToLower(text)};
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && text.find(']', colon) == std::string::npos) {
    const auto read = Whole(text.substr(colon + 1));
    if (!read || *read > 65535) return std::nullopt;
    authority.port = static_cast<int>(*read);
    authority.host.resize(colon);
  }
  return authority;
}

// The fields after the ? of an address.
class Query {
 public:
  explicit Query(const HttpRequest& request) : fields_(request.query) {}

  // What is wrong with them, if they may have these names alone.
  std::optional<Refusal> Take(const std::vector<std::string>& names) {
    for (const auto& [raw_name, raw_value] : fields_) {
      const auto name = Unescape(raw_name), value = Unescape(raw_value);
      if (!name || !value)
        return Refusal{400, absl::StrCat("'", Cut(raw_name), "=", Cut(raw_value), "': expected %XX after %")};
      if (std::find(names.begin(), names.end(), *name) == names.end()) {
        return Refusal{400, absl::StrCat("'", Cut(*name), "': expected ",
                                         names.empty() ? "nothing after ?" : absl::StrJoin(names, ", "))};
      }
      values_[*name].push_back(*value);
    }
    return std::nullopt;
  }
  const std::vector<std::string>& All(const std::string& name) { return values_[name]; }
  // The only one.
  std::optional<std::string> One(const std::string& name) {
    const auto& all = values_[name];
    return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
  }
  bool Has(const std::string& name) { return !values_[name].empty(); }
  // In an order of their own.
  std::string Text() const {
    std::string text;
    for (const auto& [name, values] : values_) {
      for (const std::string& value : values)
        absl::StrAppend(&text, "&", name.size(), name, "=", value.size(), ":", value);
    }
    return text;
  }

 private:
  const HttpFields& fields_;
  std::map<std::string, std::vector<std::string>> values_;
};

using Answer = std::variant<Question, Refusal>;

// Nothing: it is neither true nor false.
std::optional<bool> ReadFlag(Query& query, const std::string& name) {
  if (!query.Has(name)) return false;
  const auto value = query.One(name);
  if (value != "true" && value != "false") return std::nullopt;
  return *value == "true";
}

// Which jobs; what is wrong with that.
std::optional<Refusal> ReadFilter(Query& query, v1::ListJobsRequest& jobs) {
  for (const std::string& state : query.All("state")) jobs.add_states(state);
  if (query.Has("user")) {
    const auto user = query.One("user");
    if (!user || user->empty()) return Refusal{400, "user: expected one name"};
    jobs.set_user(*user);
  }
  const auto all = ReadFlag(query, "all");
  if (!all) return Refusal{400, "all: expected true or false"};
  jobs.set_all(*all);
  const auto brief = ReadFlag(query, "brief");
  if (!brief) return Refusal{400, "brief: expected true or false"};
  jobs.set_brief(*brief);
  return std::nullopt;
}

Answer ReadJobs(Query& query) {
  if (auto refusal = query.Take({"all", "brief", "state", "user"})) return *refusal;
  ListJobs jobs;
  if (auto refusal = ReadFilter(query, jobs.request)) return *refusal;
  return Question{jobs, ""};
}

// Any text may be a version: one that is not known is as none.
Answer ReadJobChanges(Query& query) {
  if (auto refusal = query.Take({"after", "all", "brief", "state", "user"})) return *refusal;
  ListJobChanges changes;
  if (auto refusal = ReadFilter(query, changes.request)) return *refusal;
  if (query.Has("after")) {
    const auto after = query.One("after");
    if (!after) return Refusal{400, "after: expected one version"};
    changes.after = *after;
  }
  return Question{changes, ""};
}

Answer ReadCheckpoints(Query& query) {
  if (auto refusal = query.Take({"job"})) return *refusal;
  ListCheckpoints checkpoints;
  if (query.Has("job")) {
    const auto job = Whole(query.One("job").value_or(""));
    if (!job || *job == 0) return Refusal{400, "job: expected the number of one"};
    checkpoints.request.set_job(*job);
  }
  return Question{checkpoints, ""};
}

// From 0 on; nothing: it is no number, or too large a one.
template <class Number>
bool ReadNumber(Query& query, const std::string& name, Number& number) {
  if (!query.Has(name)) return true;
  const auto read = Whole(query.One(name).value_or(""));
  if (!read || *read > std::numeric_limits<Number>::max()) return false;
  number = static_cast<Number>(*read);
  return true;
}

// Of the fields that a plan does not depend on, what a dry run has to have.
v1::JobSpec AnyRequest() {
  v1::JobSpec spec;
  spec.set_name("what-if");
  spec.set_on_demand(true);
  spec.add_command("true");
  spec.set_workdir("/");
  spec.set_output("/dev/null");
  spec.set_nodes(1);
  spec.mutable_per_node()->set_slots(1);
  return spec;
}

Answer ReadPlan(Query& query) {
  if (auto refusal = query.Take(
          {"gpus", "label", "memory", "nodes", "not_before_us", "slots", "start_by_us", "walltime_us"}))
    return *refusal;
  v1::JobSpec spec = AnyRequest();
  int32_t nodes = spec.nodes(), slots = spec.per_node().slots(), gpus = 0;
  int64_t memory = 0, start_by = 0, not_before = 0, walltime = 0;
  const auto number = [&](const char* name, auto& to) -> std::optional<Refusal> {
    if (ReadNumber(query, name, to)) return std::nullopt;
    return Refusal{400, absl::StrCat(name, ": expected one whole number from 0 to ",
                                     std::numeric_limits<std::decay_t<decltype(to)>>::max())};
  };
  for (const auto& refusal :
       {number("nodes", nodes), number("slots", slots), number("gpus", gpus), number("memory", memory),
        number("not_before_us", not_before), number("walltime_us", walltime)}) {
    if (refusal) return *refusal;
  }
  spec.set_nodes(nodes);
  spec.mutable_per_node()->set_slots(slots);
  spec.mutable_per_node()->set_gpus(gpus);
  spec.mutable_per_node()->set_memory(memory);
  spec.set_not_before_us(not_before);
  spec.set_walltime_us(walltime);
  const bool earliest = query.One("start_by_us") == "earliest";
  if (!earliest && (!query.Has("start_by_us") || !ReadNumber(query, "start_by_us", start_by)))
    return Refusal{400, "start_by_us: expected earliest, or one number, of microseconds since 1970 UTC"};
  spec.set_start_by_earliest(earliest);
  if (!earliest) spec.set_start_by_us(start_by);
  for (const std::string& label : query.All("label")) {
    const size_t at = label.find('=');
    if (at == std::string::npos || at == 0)
      return Refusal{400, absl::StrCat("label '", Cut(label), "': expected NAME=VALUE")};
    (*spec.mutable_labels())[label.substr(0, at)] = label.substr(at + 1);
  }
  PlanRequest plan;
  *plan.request.mutable_spec() = std::move(spec);
  return Question{plan, ""};
}

Answer ReadEvents(const HttpRequest& request, Query& query) {
  if (auto refusal = query.Take({"after"})) return *refusal;
  FollowEvents events;
  // A browser sends the header when it comes back, with the address that it began with.
  if (const auto last = request.Header("Last-Event-ID")) {
    events.after = Whole(*last);
    if (!events.after)
      return Refusal{400, absl::StrCat("Last-Event-ID: '", Cut(*last), "'; expected an event's number")};
  } else if (query.Has("after")) {
    events.after = Whole(query.One("after").value_or(""));
    if (!events.after) return Refusal{400, "after: expected an event's number"};
  }
  return Question{events, ""};
}

Answer ReadJob(const std::vector<std::string>& path, Query& query) {
  const auto id = Whole(path[1]);
  if (!id || *id == 0) return Refusal{400, absl::StrCat("job '", Cut(path[1]), "': expected a number")};
  if (path.size() == 3) {
    if (auto refusal = query.Take({"compare"})) return *refusal;
    ExplainJob plans;
    plans.request.set_id(*id);
    const auto compare = ReadFlag(query, "compare");
    if (!compare) return Refusal{400, "compare: expected true or false"};
    plans.request.set_compare(*compare);
    return Question{plans, ""};
  }
  if (auto refusal = query.Take({})) return *refusal;
  ListJobs job;
  job.request.add_ids(*id);
  return Question{job, ""};
}

Answer ReadPath(const HttpRequest& request, const std::vector<std::string>& path, Query& query) {
  const std::string& first = path[0];
  if (first == "jobs" && path.size() == 2 && path[1] == "changes") return ReadJobChanges(query);
  if (first == "jobs" && (path.size() == 2 || (path.size() == 3 && path[2] == "plans")))
    return ReadJob(path, query);
  if (path.size() == 1) {
    if (first == "jobs") return ReadJobs(query);
    if (first == "checkpoints") return ReadCheckpoints(query);
    if (first == "plan") return ReadPlan(query);
    if (first == "events") return ReadEvents(request, query);
    const std::map<std::string, Question> plain{{"nodes", {ListNodes{}, ""}},
                                                {"site", {ShowSite{}, ""}},
                                                {"trends", {ListTrends{}, ""}},
                                                {"policy", {ShowPolicy{}, ""}}};
    if (const auto found = plain.find(first); found != plain.end()) {
      if (auto refusal = query.Take({})) return *refusal;
      return found->second;
    }
  }
  return Refusal{404, absl::StrCat("'", Cut(request.path), "' is not known; expected ", kRoot,
                                   "jobs, jobs/ID, jobs/ID/plans, jobs/changes, plan, nodes, checkpoints, "
                                   "events, trends, policy or site")};
}

// A picture, a form or a link of another site's page, which has no Origin: a question that it cannot read
// still costs its reader his share of plans. The page's own files may be led to from anywhere.
std::optional<Refusal> RefuseFetch(const HttpRequest& request) {
  if (!absl::StartsWith(Unescape(request.path).value_or(""), "/api/")) return std::nullopt;
  for (const auto& [name, site] : request.headers) {
    if (!absl::EqualsIgnoreCase(name, "Sec-Fetch-Site")) continue;
    if (site != "same-origin" && site != "none")
      return Refusal{403, absl::StrCat("sec-fetch-site: '", Cut(site), "'; expected same-origin or none")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> RefuseForeign(const HttpRequest& request, const HostNames& names) {
  const auto host = request.Header("Host");
  const auto authority = host ? ReadAuthority(*host) : std::nullopt;
  const bool named = authority && names.contains(authority->host);
  if (!named && !(authority && authority->IsLoopback())) {
    return Refusal{
        421,
        absl::StrCat("host: '", Cut(host.value_or("")), "'; expected localhost, 127.0.0.1 or [::1]",
                     names.empty() ? ": this server is for its own machine"
                                   : absl::StrCat(", or ", absl::StrJoin(names, ", "), " (page_names)"))};
  }
  // By its names a browser comes with TLS, here or as far as the proxy before this.
  const std::string own = absl::StrCat(request.peer.tls || named ? "https://" : "http://", *host);
  int origins = 0;
  for (const auto& [name, origin] : request.headers) {
    if (!absl::EqualsIgnoreCase(name, "Origin")) continue;
    if (++origins > 1 || !absl::EqualsIgnoreCase(origin, own))
      return Refusal{403, absl::StrCat("origin: '", Cut(origin), "'; expected none, or ", own)};
  }
  return RefuseFetch(request);
}

int PortOf(const HttpRequest& request) {
  const auto authority = ReadAuthority(request.Header("Host").value_or(""));
  return authority ? authority->port : kPortOfHttp;
}

std::variant<Question, Refusal> ReadQuestion(const HttpRequest& request, const HostNames& names) {
  if (auto refusal = RefuseForeign(request, names)) return *refusal;
  if (request.method != "GET" && request.method != "HEAD")
    return Refusal{405, absl::StrCat("'", Cut(request.method), "': expected GET or HEAD")};
  if (request.has_body) return Refusal{413, "expected a request without a body"};
  const auto path = Unescape(request.path);
  if (!path) return Refusal{400, absl::StrCat("'", Cut(request.path), "': expected %XX after %")};
  std::vector<std::string> parts{""};
  if (absl::StartsWith(*path, kRoot)) parts = absl::StrSplit(absl::StripPrefix(*path, kRoot), '/');
  Query query(request);
  Answer answer = ReadPath(request, parts, query);
  if (auto* question = std::get_if<Question>(&answer)) question->key = absl::StrCat(*path, "?", query.Text());
  return answer;
}

}  // namespace siding::page
