// The unix socket at which Slurm's plugin asks for jobs with a deadline.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "controller/platform/slurm/submit/question.h"

namespace siding::slurm {

// Who knows the cluster. Called by one thread, not the caller's of Start().
class Answerer {
 public:
  virtual ~Answerer() = default;
  // When the job is expected to start, in time; or a status whose message tells the user why it cannot, and
  // when it could. kUnavailable: that is not known yet. The plugin waits for five seconds.
  virtual absl::StatusOr<Time> WhenWouldItStart(const Question& question) = 0;
};

// Serves questions on a thread of its own until it is destroyed. Any local user may ask; who asks is what the
// kernel says. One that is silent holds nobody up, and one that asks all the time takes no one else's turn.
class QuestionListener {
 public:
  struct Limits {
    Duration silence = std::chrono::seconds(1);  // after it a connection without a question is closed
    size_t connections = 64;                     // beyond them the one that has been silent longest is closed
    size_t connections_per_user = 16;            // the same, of this user's
    size_t questions_per_user = 100;             // in `window`; who asks more is told to ask later
    Duration window = std::chrono::seconds(10);
  };

  // A socket that is there is replaced; its folder is made. The answerer must outlive the listener. The error
  // names the socket.
  static absl::StatusOr<std::unique_ptr<QuestionListener>> Start(const std::string& path, Answerer& answerer,
                                                                 const Limits& limits);
  // With the limits as above.
  static absl::StatusOr<std::unique_ptr<QuestionListener>> Start(const std::string& path, Answerer& answerer);
  ~QuestionListener();
  QuestionListener(const QuestionListener&) = delete;
  QuestionListener& operator=(const QuestionListener&) = delete;

 private:
  class Connections;
  class Turns;
  QuestionListener(std::string path, Answerer& answerer, const Limits& limits, UniqueFd socket,
                   UniqueFd wake);
  void Run();
  void Accept(Connections& connections);
  void Serve(int connection, Turns& turns);

  const std::string path_;
  Answerer& answerer_;
  const Limits limits_;
  const UniqueFd socket_;
  const UniqueFd wake_;  // an eventfd: ends the thread
  std::thread thread_;
};

}  // namespace siding::slurm
