// What does the operators' page cost the controller? Starts the real sidingd with a page, connects simulated
// agents to it (each takes 10 jobs), and opens the page as a browser does: site, policy, jobs and nodes, and
// the stream of events. Prints for each of these the bytes that went over the wire and the controller's CPU
// time; then what many open pages cost while jobs come, beside the same minute without a page. A page asks
// for nodes every 10 s and for what has changed in the jobs every 20 s, as it does with 10,000 jobs of which
// it is told no events; tags of what it has it sends along.
//
//   page_bench [--agents 1000] [--jobs 10000] [--pages 100] [--seconds 60] [--sidingd PATH]
#include <grpcpp/grpcpp.h>
#include <httplib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/simulated/controller_process.h"
#include "bench/simulated/fleet.h"
#include "siding/v1/api.grpc.pb.h"

namespace {

namespace v1 = siding::v1;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSlots = 10;
constexpr int kViews = 9;  // of which the middle one is told
constexpr double kKB = 1000;
const char kJobs[] = "/api/v1/jobs/changes?brief=true";
const char* const kAnswers[] = {"/api/v1/site", "/api/v1/policy", kJobs, "/api/v1/nodes"};

// The same answer of a list that nobody has asked for before.
std::string OfItsOwn(const std::string& path, int number) {
  std::string other = path;
  for (int i = 0; i < number && path == kJobs; ++i) other += "&state=running";
  return other;
}

// Of an answer with that tag, which is W/"VERSION".
std::string VersionOf(const std::string& tag) {
  const size_t begin = tag.find('"') + 1;
  return tag.substr(begin, tag.size() - begin - 1);
}

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

bool Await(const char* what, const std::function<bool()>& done) {
  for (int i = 0; i < 6000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(milliseconds(50));
  }
  std::fprintf(stderr, "page_bench: gave up waiting for %s\n", what);
  return false;
}

// An open page: its stream of events, and what it asks again and again. Its end closes both.
class OpenPage {
 public:
  OpenPage(int port, int number) : asking_(Client(port)), following_(Client(port)) {
    following_->set_read_timeout(seconds(60));
    follower_ = std::thread([this] {
      following_->Get("/api/v1/events", [this](const char*, size_t size) {
        moved_ += static_cast<int64_t>(size);
        return !stop_;
      });
    });
    asker_ = std::thread([this, number] { AskAgain(number); });
  }
  ~OpenPage() {
    stop_ = true;
    following_->stop();
    follower_.join();
    asker_.join();
  }
  int64_t moved() const { return moved_; }
  int64_t refused() const { return refused_; }

  static std::unique_ptr<httplib::Client> Client(int port) {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", port);
    client->set_decompress(false);  // what is counted is what went over the wire
    client->set_keep_alive(true);
    client->set_read_timeout(seconds(60));
    return client;
  }

 private:
  void AskAgain(int number) {
    // Not all at the same moment: pages are opened one after another.
    for (int step = number % 200; !stop_; ++step) {
      if (step % 100 == 0) Ask("/api/v1/nodes");
      if (step % 200 == 0) Ask(kJobs);
      std::this_thread::sleep_for(milliseconds(100));
    }
  }
  void Ask(const std::string& path) {
    httplib::Headers headers{{"Accept-Encoding", "gzip"}};
    std::string& tag = tags_[path];
    if (!tag.empty()) headers.emplace("If-None-Match", tag);
    const auto answer =
        asking_->Get(path == kJobs && !tag.empty() ? path + "&after=" + VersionOf(tag) : path, headers);
    if (!answer || (answer->status != 200 && answer->status != 304)) {
      ++refused_;
      return;
    }
    tag = answer->get_header_value("ETag");
    moved_ += static_cast<int64_t>(answer->body.size());
  }

  const std::unique_ptr<httplib::Client> asking_, following_;
  std::map<std::string, std::string> tags_;  // of the asking thread
  std::atomic<int64_t> moved_{0}, refused_{0};
  std::atomic<bool> stop_{false};
  std::thread follower_, asker_;
};

class Bench {
 public:
  struct Size {
    int agents = 1000, jobs = 10000, pages = 100, seconds = 60;
  };
  Bench(Size size, const std::string& program)
      : size_(size),
        policy_(WritePolicy()),
        controller_(program, {"--policy", policy_, "--page", "127.0.0.1:" + std::to_string(port_),
                              "--heartbeat", "5s"}),
        channel_(grpc::CreateChannel("unix:" + controller_.socket(), grpc::InsecureChannelCredentials())),
        api_(v1::Siding::NewStub(channel_)) {}
  ~Bench() { std::filesystem::remove(policy_); }

  // False if something did not come about; it has been said.
  bool Run() {
    const auto answers = [&] {
      const auto site = OpenPage::Client(port_)->Get("/api/v1/site");
      return site && site->status == 200;
    };
    if (!Await("sidingd to serve the page", answers)) return false;
    siding::FleetOptions options;
    options.socket = controller_.socket();
    options.agents = size_.agents;
    options.node.slots = kSlots;
    agents_.emplace(std::move(options));
    if (!Await("the agents' welcome", [&] { return agents_->Welcomed() == size_.agents; })) return false;
    for (int j = 0; j < size_.jobs; ++j) {
      if (!Submit()) return false;
    }
    if (!Await("all jobs to run", [&] { return agents_->Tasks() >= size_.jobs; })) return false;
    std::this_thread::sleep_for(seconds(10));  // what the last ones have left to be done is over
    std::printf("%d nodes, %d jobs that run\n\n", size_.agents, size_.jobs);
    std::fflush(stdout);
    return OpenOne() && KeepMany();
  }

 private:
  static std::string WritePolicy() {
    char name[] = "/tmp/siding-bench-policy-XXXXXX";
    close(mkstemp(name));
    std::ofstream(name) << "private_jobs: false\n";
    return name;
  }

  bool Submit() {
    v1::SubmitRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_name("batch" + std::to_string(++submitted_));
    spec.set_nodes(1);
    spec.mutable_per_node()->set_slots(1);
    spec.mutable_per_node()->set_memory(4LL << 30);
    spec.add_command("/bin/true");
    spec.set_workdir("/");
    spec.set_output("/dev/null");
    spec.add_methods(v1::CHECKPOINT);
    grpc::ClientContext context;
    v1::SubmitResponse response;
    const grpc::Status status = api_->Submit(&context, request, &response);
    if (!status.ok()) std::fprintf(stderr, "page_bench: submit: %s\n", status.error_message().c_str());
    return status.ok();
  }

  // Each answer made anew: what was answered a moment ago is not good any more.
  bool OpenOne() {
    std::printf("%-34s %12s %16s %12s\n", "first view", "moved", "controller CPU", "wall");
    double moved_in_all = 0, cpu_in_all = 0;
    for (const char* path : kAnswers) {
      std::vector<double> moved, cpu, wall;
      for (int i = 0; i < kViews; ++i) {
        std::this_thread::sleep_for(seconds(3));
        const auto client = OpenPage::Client(port_);
        const double cpu_before = controller_.CpuSeconds();
        const Clock::time_point start = Clock::now();
        const auto answer = client->Get(OfItsOwn(path, i + 1), {{"Accept-Encoding", "gzip"}});
        wall.push_back(Seconds(Clock::now() - start));
        cpu.push_back(controller_.CpuSeconds() - cpu_before);
        if (!answer || answer->status != 200) {
          std::fprintf(stderr, "page_bench: %s: %d\n", path, answer ? answer->status : 0);
          return false;
        }
        moved.push_back(static_cast<double>(answer->body.size()));
      }
      moved_in_all += Median(moved);
      cpu_in_all += Median(cpu);
      std::printf("%-34s %9.1f kB %13.0f ms %9.0f ms\n", path, Median(moved) / kKB, 1000 * Median(cpu),
                  1000 * Median(wall));
    }
    std::printf("%-34s %9.1f kB %13.0f ms   bounds: 500 kB, 300 ms\n\n", "in all", moved_in_all / kKB,
                1000 * cpu_in_all);
    return true;
  }

  bool KeepMany() {
    const double without = CoresWhileJobsCome();
    std::vector<std::unique_ptr<OpenPage>> pages;
    for (int i = 0; i < size_.pages; ++i) pages.push_back(std::make_unique<OpenPage>(port_, i));
    std::this_thread::sleep_for(seconds(20));  // each has what it asks for
    const auto moved = [&] {
      int64_t sum = 0;
      for (const auto& page : pages) sum += page->moved();
      return static_cast<double>(sum);
    };
    const double moved_before = moved(), with = CoresWhileJobsCome();
    std::printf("a job a second comes, in %d s: %.3f of a core without a page, %.3f with %d open pages\n",
                size_.seconds, without, with, size_.pages);
    std::printf("%d pages cost %.3f of a core (bound: 0.1), and each is sent %.1f kB a second\n", size_.pages,
                with - without, (moved() - moved_before) / kKB / size_.pages / size_.seconds);
    int64_t refused = 0;
    for (const auto& page : pages) refused += page->refused();
    if (refused > 0)
      std::fprintf(stderr, "page_bench: %lld questions were not answered\n", static_cast<long long>(refused));
    return refused == 0;
  }

  double CoresWhileJobsCome() {
    const double cpu = controller_.CpuSeconds();
    const Clock::time_point start = Clock::now();
    for (int second = 1; second <= size_.seconds; ++second) {
      Submit();
      std::this_thread::sleep_until(start + seconds(second));
    }
    return (controller_.CpuSeconds() - cpu) / Seconds(Clock::now() - start);
  }

  const Size size_;
  const std::string policy_;
  const int port_ = siding::FreePort();
  const siding::ControllerProcess controller_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Siding::Stub> api_;
  std::optional<siding::Fleet> agents_;
  int submitted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the operators' page costs sidingd");
  Bench::Size size;
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sidingd";
  app.add_option("--agents", size.agents)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--jobs", size.jobs, "that run; 10 for each agent at most")->check(CLI::Range(0, 1000000));
  app.add_option("--pages", size.pages, "that are open")->check(CLI::Range(0, 200))->capture_default_str();
  app.add_option("--seconds", size.seconds, "how long open pages are measured")->capture_default_str();
  app.add_option("--sidingd", program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return Bench(size, program).Run() ? 0 : 1;
}
