#include "spank/messages.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace siding::spank {
namespace {

// Appends to a text of limited size; once it does not fit it is empty for good.
class Text {
 public:
  Text(char* text, size_t size) : text_(text), size_(size) {}
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    if (full_) return;
    va_list arguments;
    va_start(arguments, format);
    const int added = std::vsnprintf(text_ + length_, size_ - length_, format, arguments);
    va_end(arguments);
    full_ = added < 0 || length_ + added >= size_;
    length_ = full_ ? 0 : length_ + added;
  }
  void AddNumber(const char* key, int64_t number) { Add("%s %lld\n", key, static_cast<long long>(number)); }
  // Leaves out what was not said.
  void AddIfSet(const char* key, int64_t number) {
    if (number > 0) AddNumber(key, number);
  }
  // A line of its own, whatever is in `value`.
  void AddLine(const char* key, const char* name, const char* value) {
    const size_t begin = length_;
    Add("%s %s %s", key, name, value);
    for (size_t i = begin; i < length_; ++i) {
      if (text_[i] == '\n') text_[i] = ' ';
    }
    Add("\n");
  }
  size_t length() const { return length_; }

 private:
  char* text_;
  size_t size_;
  size_t length_ = 0;
  bool full_ = false;
};

struct Place {
  const char* key;
  char* value;
};

bool TakeLine(const Place* places, int count, const char* line, size_t length) {
  for (int i = 0; i < count; ++i) {
    const size_t key = std::strlen(places[i].key);
    if (length <= key || std::strncmp(line, places[i].key, key) != 0 || line[key] != ' ') continue;
    if (length - key - 1 >= kMaxPath) return false;
    std::memcpy(places[i].value, line + key + 1, length - key - 1);
    places[i].value[length - key - 1] = '\0';
  }
  return true;  // a key of a later agent is none of our business
}

bool TakeKind(const char* line, size_t length, AnswerKind& kind) {
  static constexpr struct {
    AnswerKind kind;
    const char* word;
  } kWords[] = {{AnswerKind::kAccepted, "siding-accepted"},
                {AnswerKind::kRefused, "siding-refused"},
                {AnswerKind::kGo, "siding-go"},
                {AnswerKind::kFailed, "siding-failed"},
                {AnswerKind::kPromised, "siding-promised"},
                {AnswerKind::kUndecided, "siding-undecided"}};
  for (const auto& candidate : kWords) {
    char expected[32];
    const int size = std::snprintf(expected, sizeof expected, "%s %d", candidate.word, kVersion);
    if (length != static_cast<size_t>(size) || std::strncmp(line, expected, length) != 0) continue;
    kind = candidate.kind;
    return true;
  }
  return false;
}

}  // namespace

size_t FormatRegistration(const Registration& r, char* text, size_t size) {
  Text out(text, size);
  out.Add("siding-register %d\n", kVersion);
  out.AddNumber("job", r.job);
  if (r.step == kBatchStep)
    out.Add("step batch\n");
  else
    out.AddNumber("step", r.step);
  out.AddNumber("task", r.task);
  out.AddNumber("tasks", r.tasks);
  out.AddNumber("uid", r.uid);
  out.AddNumber("gid", r.gid);
  const Options& o = r.options;
  if (o.methods != 0) {
    char methods[64];
    FormatMethods(o.methods, methods);
    out.Add("methods %s\n", methods);
  }
  out.AddIfSet("checkpoint-interval-us", o.checkpoint_interval_us);
  out.AddIfSet("checkpoint-signal", o.checkpoint_signal);
  out.AddIfSet("signal-grace-us", o.checkpoint_signal != 0 ? o.signal_grace_us : 0);
  out.AddIfSet("notice-us", o.notice_us);
  out.AddIfSet("gpu-collectives", static_cast<int64_t>(o.gpu_collectives));
  out.AddIfSet("allow-io-uring", o.allow_io_uring ? 1 : 0);
  if (o.max_preemptions >= 0) out.AddNumber("max-preemptions", o.max_preemptions);
  if (o.append_files) out.AddNumber("append-files", 1);
  if (o.keep_connections) out.AddNumber(kKeepConnections, 1);
  return out.length();
}

size_t FormatQuestion(const Question& question, char* text, size_t size) {
  Text out(text, size);
  out.Add("siding-question %d\n", kVersion);
  out.AddNumber("start-by-us", question.start_by_us);
  out.AddIfSet("not-before-us", question.not_before_us);
  for (int i = 0; i < question.option_count; ++i) {
    const GivenOption& option = question.options[i];
    if (option.value != nullptr) out.AddLine("option", option.name, option.value);
  }
  return out.length();
}

bool ParseAnswer(const char* text, size_t size, Answer& answer) {
  char starts[kMaxPath] = "";
  const Place places[] = {{"folder", answer.folder}, {"reason", answer.reason}, {"starts-us", starts}};
  bool first = true;
  for (size_t at = 0; at < size;) {
    const void* end = std::memchr(text + at, '\n', size - at);
    if (end == nullptr) return false;  // cut off
    const size_t length = static_cast<const char*>(end) - (text + at);
    if (first ? !TakeKind(text + at, length, answer.kind) : !TakeLine(places, 3, text + at, length))
      return false;
    first = false;
    at += length + 1;
  }
  if (first) return false;
  answer.starts_us = std::strtoll(starts, nullptr, 10);
  if (answer.kind == AnswerKind::kPromised) return answer.starts_us > 0 || std::strcmp(starts, "0") == 0;
  return answer.kind != AnswerKind::kAccepted || answer.folder[0] == '/';
}

}  // namespace siding::spank
