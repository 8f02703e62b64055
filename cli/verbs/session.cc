#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/utf8.h"

namespace siding::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(1);
// Of a controller: time to install another version of it, or to repair its machine.
constexpr auto kAbsence = std::chrono::minutes(10);
constexpr int kFailedExit = 1;

using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

// As everywhere else: "suspend", "as-is"; empty: it is not said.
std::string NameInJson(const std::string& value) {
  if (value.ends_with("_UNSPECIFIED")) return "";
  return absl::StrReplaceAll(absl::AsciiStrToLower(value), {{"_", "-"}});
}

void NameEnums(Json& json, const FieldDescriptor& field);

// A job's walltime_us was called hold_us as well, for some jobs.
void NameEnums(Json& json, const google::protobuf::Descriptor& type) {
  for (auto& [name, value] : json.items()) {
    if (const FieldDescriptor* field = type.FindFieldByName(name); field != nullptr) NameEnums(value, *field);
  }
  if (&type != v1::JobSpec::descriptor()) return;
  if (json.value("walltime_us", "0") == "0") json["walltime_us"] = json.value("hold_us", "0");
  json.erase("hold_us");
}

void NameEnums(Json& json, const FieldDescriptor& field) {
  if (json.is_array()) {
    for (Json& element : json) NameEnums(element, field);
  } else if (field.is_map()) {
    return;  // of text
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && json.is_object()) {
    NameEnums(json, *field.message_type());
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM && json.is_string()) {
    json = NameInJson(json.get<std::string>());
  }
}

}  // namespace

Client& Session::client() {
  if (client_ == nullptr) client_ = std::make_unique<Client>(connection);
  return *client_;
}

absl::Status Session::OutlastController() {
  return client().Outlast(kAbsence, [](const absl::Status& status) {
    std::cerr << (isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "") << status.message()
              << "; waits for it for up to " << kAbsence.count() << " minutes" << std::endl;
  });
}

Style Session::style() const {
  return {isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr, SystemClock().Now()};
}

std::string Session::ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string out;
  (void)google::protobuf::util::MessageToJsonString(message, &out, options);
  Json json = Json::parse(out);
  NameEnums(json, *message.GetDescriptor());
  return json.dump();
}

void Session::Print(const google::protobuf::Message& message, const std::string& text) const {
  std::cout << Text(message, text) << std::flush;
}

std::string Session::Text(const google::protobuf::Message& message, const std::string& text) const {
  return json ? ToJson(message) + "\n" : text;
}

void Session::Done(const std::string& text) const {
  if (json) {
    std::cout << "{}" << std::endl;
  } else {
    std::cout << text << std::endl;
  }
}

void Session::PrintFailure(const absl::Status& status) {
  std::cout << nlohmann::json{{"status", absl::AsciiStrToLower(absl::StatusCodeToString(status.code()))},
                              {"reason", ToUtf8(std::string(status.message()))}}
            << std::endl;
}

absl::StatusOr<v1::Job> Follow(Session& session, int64_t id,
                               const std::function<bool(const v1::Job&)>& over) {
  SIDING_RETURN_IF_ERROR(session.OutlastController());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  std::string last;
  auto last_line = std::chrono::steady_clock::time_point();
  for (;;) {
    SIDING_ASSIGN_OR_RETURN(v1::Job job, session.client().Job(id));
    const bool done = over(job);
    std::string what = job.has_progress() ? ProgressText(job.progress()) : "";
    absl::StrAppend(&what, what.empty() || job.waits_for().empty() ? "" : "; ", job.waits_for());
    const std::string line =
        absl::StrCat("job ", id, ": ", job.state(), what.empty() || done ? "" : ": ", done ? "" : what);
    const auto now = std::chrono::steady_clock::now();
    if (terminal && line != last) {
      std::cerr << "\r\033[K" << line << (done ? "\n" : "") << std::flush;
    } else if (!session.json && line != last && (done || now - last_line >= kLineInterval)) {
      std::cerr << line << std::endl;
      last_line = now;
    }
    last = line;
    if (done) return job;
    std::this_thread::sleep_for(kPoll);
  }
}

absl::Status ForEachJob(const std::vector<int64_t>& jobs, const JobOrder& act) {
  absl::Status failed;
  for (const int64_t job : jobs) {
    absl::Status status = act(job);
    if (!status.ok() && !failed.ok()) std::cerr << status.message() << "\n";
    if (failed.ok()) failed = std::move(status);
  }
  return failed;
}

int ExitCodeOf(const v1::Job& job) {
  if (job.state() == "done") return 0;
  const int code = job.exit_code() & 0xff;
  return code != 0 ? code : kFailedExit;
}

}  // namespace siding::cli
