// siding-on-node: becomes this node's agent for pods, out of a container that shares the node's pid
// namespace. It puts siding-agent, siding-runc and criu on the node, where the container runtime finds
// siding-runc as FOLDER/current/siding-runc, leaves the container's mounts for those of the container
// runtime, and runs the agent there. Nothing of the node's settings is changed.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/criu/criu.h"
#include "agent/on_node/node_mounts.h"
#include "agent/on_node/programs.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct Options {
  std::string folder = "/opt/siding";
  std::string socket = "/run/siding/pods.sock";
  std::string runc;
  std::string criu;
  std::vector<std::string> agent;  // its further arguments
};

absl::Status BecomeAgent(const Options& options) {
  // Whoever has started this container's first process: the container runtime, which sees the mounts of all
  // containers.
  const pid_t runtime = getppid();
  if (runtime == 0)
    return absl::FailedPreconditionError("expected a container in the node's pid namespace (hostPID)");
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string current = options.folder + "/current";
  std::map<std::string, std::string> programs = {{"siding-agent", here / "siding-agent"},
                                                 {"siding-runc", here / "siding-runc"}};
  std::string criu = options.criu;
  if (criu.empty()) {
    const auto own = FindCriu("");
    if (!own.ok())
      return Annotate(own.status(),
                      "this image has no criu (make-image --with), and --criu names none of the node");
    programs["criu"] = *own;
    criu = current + "/criu";
  }
  SIDING_ASSIGN_OR_RETURN(NodeFiles files, ReadPrograms(programs, here / "siding-launcher"));
  std::string& settings = files["siding-runc.conf"];
  if (!options.runc.empty()) absl::StrAppend(&settings, "runc ", options.runc, "\n");
  absl::StrAppend(&settings, "criu ", std::filesystem::path(criu).parent_path().string(), "\n", "socket ",
                  options.socket, "\n");
  SIDING_RETURN_IF_ERROR(EnterMountsOf(runtime, std::filesystem::path(options.socket).parent_path()));
  SIDING_ASSIGN_OR_RETURN(const std::string place, PutOnNode(files, options.folder));

  std::vector<std::string> words = {place + "/siding-agent", "--pods-socket", options.socket, "--criu", criu};
  if (!options.runc.empty()) words.insert(words.end(), {"--runc", options.runc});
  words.insert(words.end(), options.agent.begin(), options.agent.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("PATH", kPath, 1);
  setenv("SIDING_CRIU_APART", "1", 1);
  execv(argv[0], argv.data());
  return ErrnoError(errno, words[0]);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "siding-on-node: puts siding's programs for pods on the node of its container, and becomes the agent "
      "there");
  Options options;
  app.add_option("--folder", options.folder, "on the node: where the programs come")->capture_default_str();
  app.add_option("--pods-socket", options.socket, "on the node: where siding-runc finds the agent")
      ->capture_default_str();
  app.add_option("--runc", options.runc, "on the node: the container runtime's runc; default: that in PATH");
  app.add_option("--criu", options.criu, "on the node: criu; default: that of this image");
  app.add_option("agent", options.agent, "after --: the agent's further arguments");
  app.set_version_flag("--version", "siding-on-node " SIDING_VERSION);
  CLI11_PARSE(app, argc, argv);
  umask(022);
  const absl::Status status = BecomeAgent(options);
  std::cerr << "siding-on-node: " << std::string(status.message()) << "\n";
  return 1;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
