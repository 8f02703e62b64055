#include "spank/ask.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "spank/connect.h"

namespace siding::spank {
namespace {

constexpr size_t kLongestPath = 256;  // longer than a socket's can be

// What the controller is told of a job.
constexpr const char* kTold[] = {"nodes",         "nodelist",     "ntasks",    "ntasks-per-node",
                                 "cpus-per-task", "mincpus",      "mem",       "mem-per-cpu",
                                 "mem-per-gpu",   "gres",         "gpus",      "gpus-per-node",
                                 "gpus-per-task", "cpus-per-gpu", "exclusive", "partition",
                                 "qos",           "account",      "time",      "job-name",
                                 "array",         "exclude",      "constraint"};
constexpr int kToldCount = sizeof kTold / sizeof *kTold;

AskResult Refused(const char* why) {
  AskResult result;
  std::snprintf(result.words, sizeof result.words, "%s", why);
  return result;
}

// As Slurm writes --begin: in the user's time zone, which is this process's.
bool ParseBegin(const char* text, int64_t& microseconds) {
  std::tm parts = {};
  parts.tm_isdst = -1;
  const char* const end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return false;
  microseconds = mktime(&parts) * kSecond;
  return true;
}

int64_t MonotonicMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

// False: nothing has come in time.
bool WaitToRead(int fd, int patience_ms) {
  const int64_t end = MonotonicMs() + patience_ms;
  for (;;) {
    const int64_t left = end - MonotonicMs();
    pollfd ready = {fd, POLLIN, 0};
    const int count = poll(&ready, 1, left > 0 ? static_cast<int>(left) : 0);
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

const char* Talk(int fd, const char* text, size_t length, int patience_ms, Answer& answer) {
  char reply[kMaxMessage];
  if (send(fd, text, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) return std::strerror(errno);
  if (!WaitToRead(fd, patience_ms)) return "it is silent";
  const ssize_t size = recv(fd, reply, sizeof reply, 0);
  if (size <= 0) return "it has closed the connection";
  if (!ParseAnswer(reply, static_cast<size_t>(size), answer) ||
      (answer.kind != AnswerKind::kPromised && answer.kind != AnswerKind::kRefused &&
       answer.kind != AnswerKind::kUndecided)) {
    return "its answer is of another version";
  }
  return nullptr;
}

// Null, or why there is no answer.
const char* Exchange(const char* controller, const char* text, size_t length, int patience_ms,
                     Answer& answer) {
  const int fd = Connect(controller, patience_ms);
  if (fd < 0) return std::strerror(errno);
  const char* const problem = Talk(fd, text, length, patience_ms, answer);
  close(fd);
  return problem;
}

// The same with the first of them, separated by commas, that answers.
const char* ExchangeWithOneOf(const char* controllers, const char* text, size_t length, int patience_ms,
                              Answer& answer) {
  for (const char* at = controllers;;) {
    const size_t size = std::strcspn(at, ",");
    char one[kLongestPath] = "";
    std::snprintf(one, sizeof one, "%.*s", static_cast<int>(size), at);
    const char* const problem = Exchange(one, text, length, patience_ms, answer);
    if (problem == nullptr || at[size] == '\0') return problem;
    at += size + 1;
  }
}

// "[siding start-by=2026-11-21T12:00:00.000000Z]", which controller/platform/slurm/client/marks.h reads.
void FormatMark(int64_t start_by_us, char (&mark)[64]) {
  const time_t seconds = start_by_us / kSecond;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char time[32] = "";
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(mark, sizeof mark, "[siding start-by=%s.%06dZ]", time,
                static_cast<int>(start_by_us % kSecond));
}

// Before the user's own comment, wherever that was given.
bool MarkJob(const SlurmCommand& command, int64_t start_by_us) {
  char mark[64];
  FormatMark(start_by_us, mark);
  const char* const own = Given(command, "comment");
  if (own == nullptr || *own == '\0') return Give(command, "comment", mark);
  const size_t size = std::strlen(mark) + 1 + std::strlen(own) + 1;
  char* const both = static_cast<char*>(std::malloc(size));
  if (both == nullptr) return false;
  std::snprintf(both, size, "%s %s", mark, own);
  const bool marked = Give(command, "comment", both);
  std::free(both);
  return marked;
}

// For a reader of today the time of day is enough.
void SayPromise(int64_t starts_us, int64_t now_us, AskResult& result) {
  if (starts_us == 0) {
    std::snprintf(result.words, sizeof result.words,
                  "the job cannot start in time; it goes before batch jobs, but no job makes way");
    return;
  }
  const time_t starts = starts_us / kSecond, now = now_us / kSecond;
  std::tm then = {}, today = {};
  localtime_r(&starts, &then);
  localtime_r(&now, &today);
  const bool is_today = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  char time[32] = "";
  std::strftime(time, sizeof time, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
  std::snprintf(result.words, sizeof result.words, "the job is to start by %s", time);
}

}  // namespace

AskResult AskAndMark(const Options& options, int64_t now_us, const SlurmCommand& command,
                     const char* controller, int patience_ms) {
  if (!command.complete())
    return Refused("jobs of this version of Slurm cannot be marked: --siding-start-by does not work with it");
  GivenOption given[kToldCount];
  for (int i = 0; i < kToldCount; ++i) given[i] = {kTold[i], Given(command, kTold[i])};
  Question question;
  question.start_by_us = options.start_by_us != 0 ? options.start_by_us : now_us + options.start_within_us;
  question.options = given;
  question.option_count = kToldCount;
  const char* const begin = Given(command, "begin");
  if (begin != nullptr && !ParseBegin(begin, question.not_before_us))
    return Refused("--begin cannot be read: is SLURM_TIME_FORMAT set?");
  char text[kMaxMessage];
  const size_t length = FormatQuestion(question, text, sizeof text);
  if (length == 0) return Refused("the job's options are longer than siding takes (8 KiB)");

  AskResult result;
  Answer answer;
  const char* const silence = ExchangeWithOneOf(controller, text, length, patience_ms, answer);
  if (silence == nullptr && answer.kind == AnswerKind::kRefused)
    return Refused(answer.reason[0] == '\0' ? "it cannot start by then" : answer.reason);
  if (!MarkJob(command, question.start_by_us))
    return Refused("this Slurm command takes no comment: the job cannot be marked");
  const bool promised = silence == nullptr && answer.kind == AnswerKind::kPromised;
  result.verdict = promised ? Verdict::kPromised : Verdict::kUnanswered;
  if (promised) {
    SayPromise(answer.starts_us, now_us, result);
  } else if (silence == nullptr) {
    std::snprintf(
        result.words, sizeof result.words,
        "the controller cannot say yet whether the job can start by then (%s); it is planned for when it can",
        answer.reason);
  } else {
    std::snprintf(result.words, sizeof result.words,
                  "the controller does not answer (%s: %s); the job waits its turn as any other", controller,
                  silence);
  }
  return result;
}

}  // namespace siding::spank
