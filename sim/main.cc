// siding-sim: what siding would have done with a site's own trace, beside what other schedulers do.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/manual/manual.h"
#include "common/mutex.h"
#include "common/status.h"
#include "policy/policy_file.h"
#include "sim/efficiency.h"
#include "sim/output.h"
#include "sim/report.h"

namespace siding::sim {
namespace {

struct Options {
  std::string trace, strategies = "all", policy, json, csv, notice_mix, checkpoint_fraction;
  bool strict = false, quiet = false, protect = false;
  int limit = 0, threads = 2;
  Parameters parameters;
};

// "0:0.5,60:0.5"
absl::Status ParseMix(const std::string& text, std::map<double, double>& mix) {
  if (text.empty()) return absl::OkStatus();
  mix.clear();
  std::istringstream in(text);
  for (std::string entry; std::getline(in, entry, ',');) {
    double seconds = 0, share = 0;
    char colon = 0, rest = 0;
    if (std::istringstream fields(entry);
        !(fields >> seconds >> colon >> share) || colon != ':' || fields >> rest) {
      return absl::InvalidArgumentError(
          absl::StrCat("--notice-mix: expected SECONDS:SHARE,... such as 0:0.5,300:0.5; got '", entry, "'"));
    }
    mix[seconds] += share;
  }
  return absl::OkStatus();
}

absl::Status ParseFraction(const std::string& text, Parameters& p) {
  if (text.empty()) return absl::OkStatus();
  char colon = 0, rest = 0;
  std::istringstream fields(text);
  if (!(fields >> p.checkpoint_least >> colon >> p.checkpoint_most) || colon != ':' || fields >> rest)
    return absl::InvalidArgumentError(
        absl::StrCat("--checkpoint-fraction: expected LEAST:MOST such as 0.1:0.6; got '", text, "'"));
  return absl::OkStatus();
}

// Every strategy is independent of the others, so they are replayed side by side.
std::vector<Metrics> ReplayAll(const Workload& workload, const std::vector<Strategy>& strategies, int threads,
                               bool quiet) {
  std::vector<Metrics> metrics(strategies.size());
  std::atomic<size_t> next{0};
  Mutex output;
  const auto work = [&] {
    for (size_t i; (i = next++) < strategies.size();) {
      const auto start = std::chrono::steady_clock::now();
      metrics[i] = Measure(workload, strategies[i].name, Replay(workload, strategies[i]));
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      MutexLock lock(output);
      if (!quiet) std::cerr << absl::StrFormat("%-22s replayed in %.1f s\n", strategies[i].name, took);
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  return metrics;
}

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

// Before hours of work: that what comes out of them can be written.
absl::Status CanBeWritten(const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

absl::Status Compare(Options& o) {
  SIDING_RETURN_IF_ERROR(ParseMix(o.notice_mix, o.parameters.notice_mix));
  SIDING_RETURN_IF_ERROR(ParseFraction(o.checkpoint_fraction, o.parameters));
  SIDING_RETURN_IF_ERROR(Check(o.parameters));
  Policy policy = DefaultPolicy();
  if (!o.policy.empty()) {
    SIDING_ASSIGN_OR_RETURN(PolicyFile file, LoadPolicyFile(o.policy));
    for (const std::string& warning : file.warnings)
      std::cerr << o.policy << ": warning: " << warning << "\n";
    policy = std::move(file.policy);
  }
  SIDING_ASSIGN_OR_RETURN(const std::vector<Strategy> strategies,
                          ParseStrategies(o.strategies, policy, o.protect));
  if (!o.protect && MostLostWork(policy) > Duration(0))
    std::cerr << o.policy << ": warning: with its most_lost_work siding is the same as siding-protected\n";
  SIDING_RETURN_IF_ERROR(CanBeWritten(o.json));
  SIDING_RETURN_IF_ERROR(CanBeWritten(o.csv));
  SIDING_ASSIGN_OR_RETURN(Trace trace, ReadTrace(o.trace, o.strict));
  if (o.limit > 0 && static_cast<size_t>(o.limit) < trace.jobs.size()) trace.jobs.resize(o.limit);
  SIDING_ASSIGN_OR_RETURN(const Workload workload, Draw(trace, o.parameters));
  for (const std::vector<std::string>& skipped : {trace.skipped, workload.dropped}) {
    if (skipped.empty()) continue;
    std::cerr << o.trace << ": " << skipped.size() << " jobs skipped; the first: " << skipped.front() << "\n";
  }
  const auto result = ToJson(trace, workload, ReplayAll(workload, strategies, o.threads, o.quiet));
  if (!o.quiet) std::cout << DrawnText(result);
  std::cout << ToTable(result);
  if (!o.json.empty()) SIDING_RETURN_IF_ERROR(Write(o.json, result.dump(2) + "\n"));
  if (!o.csv.empty()) SIDING_RETURN_IF_ERROR(Write(o.csv, ToCsv(result)));
  return absl::OkStatus();
}

absl::Status MakeReport(const std::string& path, const std::string& html, const std::string& png) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  const auto result = nlohmann::json::parse(in, nullptr, false);
  if (result.is_discarded() || !result.contains("strategies") || !result.contains("drawn")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected what siding-sim compare --json wrote"));
  }
  if (!html.empty()) SIDING_RETURN_IF_ERROR(Write(html, ReportHtml(result)));
  if (!png.empty()) SIDING_RETURN_IF_ERROR(WritePng(ReportSvg(result), png));
  return absl::OkStatus();
}

absl::Status PrintEfficiency(const EfficiencyTerms& terms, const std::string& path) {
  SIDING_RETURN_IF_ERROR(Check(terms));
  SIDING_RETURN_IF_ERROR(CanBeWritten(path));
  const auto result = EfficiencyJson(terms);
  std::cout << EfficiencyText(result);
  return path.empty() ? absl::OkStatus() : Write(path, result.dump(2) + "\n");
}

// Adds options whose help says what they are by default.
auto AdderTo(CLI::App& app) {
  return [&app](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
}

void AddEfficiency(CLI::App& app, EfficiencyTerms& t, std::string& path) {
  const auto add = AdderTo(app);
  add("--nodes", t.nodes, "nodes of the machine; one job has them all");
  add("--gpus", t.gpus, "GPUs of a node; several with commas between them")->delimiter(',');
  add("--failure-rates", t.failures_per_node_year,
      "failures of a node in a year, GPUs left out; several with commas between them")
      ->delimiter(',');
  add("--gpu-failure-rate", t.failures_per_gpu_year, "failures of a GPU in a year");
  add("--memory", t.memory, "bytes in an image of a node, GPUs left out");
  add("--gpu-memory", t.gpu_memory, "bytes on each GPU");
  add("--gpu-drain", t.gpu_drain, "bytes/s of one GPU into RAM");
  add("--gpu-refill", t.gpu_refill, "bytes/s of one GPU from RAM");
  add("--host-bandwidth", t.host_bandwidth, "bytes/s of all GPUs of a node together");
  add("--node-bandwidth", t.node_bandwidth, "bytes/s of a node to and from storage");
  add("--shared-bandwidth", t.shared_bandwidth, "bytes/s of all nodes together");
  add("--overhead", t.overhead, "seconds of every image and every restore");
  add("--image-stop", t.image_stop, "seconds for which an image of what has changed stops the job");
  add("--image-stop-per-gib", t.image_stop_per_gib, "the same, beside that, for each GiB of --memory");
  add("--written-share", t.written_share, "share of its memory that a job writes from one image to the next");
  add("--page-fault", t.page_fault, "seconds of the first store to a page after an image");
  app.add_option("--json", path, "write the result there");
}

void AddCompare(CLI::App& app, Options& o) {
  const auto add = AdderTo(app);
  app.add_option("--trace", o.trace, "a Standard Workload Format file (.swf), or Philly's csv")->required();
  add("--strategies", o.strategies, "all, or names with commas between them");
  app.add_option(
      "--policy", o.policy,
      "policy file for the strategies 'siding', 'siding-protected' and 'siding-protected-local'; else the "
      "values of policies/default.yaml");
  add("--seed", o.parameters.seed, "of all random numbers")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool whole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
            return whole ? "" : "expected a whole number, 0 or more, got " + text;
          },
          ""));
  add("--on-demand-share", o.parameters.on_demand_share, "share of the jobs that are on demand");
  add("--on-demand-most-nodes", o.parameters.on_demand_most_nodes,
      "share of the machine; larger jobs are batch");
  app.add_option("--notice-mix", o.notice_mix,
                 "SECONDS:SHARE,...: how long before its start a request is known");
  add("--tolerance", o.parameters.tolerance, "seconds that a start may be late");
  app.add_option("--nodes", o.parameters.nodes, "nodes of the machine; default: as the trace says");
  app.add_option("--checkpoint-fraction", o.checkpoint_fraction,
                 "LEAST:MOST, share of a node's memory in an image");
  add("--node-memory", o.parameters.node_memory, "bytes of memory of a node");
  add("--node-bandwidth", o.parameters.node_bandwidth, "bytes/s of a node to shared storage");
  add("--shared-bandwidth", o.parameters.shared_bandwidth, "bytes/s of all nodes together");
  add("--local-bandwidth", o.parameters.local_bandwidth,
      "bytes/s of one node's own disk, for images on schedule where the policy has checkpoint_tier: local");
  add("--spread", o.parameters.spread, "relative spread of real times around predicted ones");
  add("--self-checkpointing", o.parameters.self_checkpointing, "share of jobs that save by themselves");
  add("--failure-rate", o.parameters.failures_per_node_year, "failures of a node in a year");
  add("--disks-lost", o.parameters.disks_lost,
      "share of these in which the node's own disk is lost; else it is there again with its node");
  app.add_flag("--protect", o.protect,
               "checkpoint batch jobs on schedule under every strategy, as under siding-protected");
  app.add_flag("--protect-on-demand", o.parameters.protect_on_demand,
               "checkpoint on-demand jobs on schedule as well, where batch jobs are");
  app.add_flag(
      "--whole-images", o.parameters.whole_images,
      "as if no job were tracked: each image is whole, and its job stands still until it is written, "
      "as with jobs on GPUs");
  app.add_flag("--images-alone", o.parameters.images_alone,
               "as if nobody else wrote to shared storage beside an image on schedule: it has all of the "
               "bandwidth, and not only the policy's checkpoint_bandwidth");
  add("--image-stop", o.parameters.image_stop,
      "seconds for which a tracked job stands still for an image on schedule, whatever its size");
  add("--image-stop-per-gib", o.parameters.image_stop_per_gib,
      "seconds beside that for each GiB that the job has on a node");
  add("--untracked-stop-per-gib", o.parameters.untracked_stop_per_gib,
      "instead of the last, for the first two images after a start or restore");
  add("--page-fault", o.parameters.page_fault,
      "seconds that the first store to a page after an image costs a tracked job");
  add("--written-share", o.parameters.written_share,
      "share of its memory that a tracked job writes from one image to the next");
  app.add_flag("--same-pages", o.parameters.same_pages,
               "as if these were the same pages each time, so that images write no others; else they are at "
               "random places");
  app.add_option("--limit", o.limit, "use only the first N jobs");
  app.add_flag("--strict", o.strict, "refuse a trace with a broken line, instead of skipping the line");
  add("--threads", o.threads, "how many strategies run at the same time")->check(CLI::Range(1, 64));
  app.add_option("--json", o.json, "write the result there");
  app.add_option("--csv", o.csv, "write the result there");
  app.add_flag("--quiet", o.quiet, "the table only");
}

int Main(int argc, char** argv) {
  CLI::App app(
      "siding-sim replays a workload trace under siding's planner and under what other schedulers do");
  app.require_subcommand(1);
  Options options;
  CLI::App& compare = *app.add_subcommand("compare", "replay a trace under several strategies");
  AddCompare(compare, options);
  CLI::App& report = *app.add_subcommand("report", "a page with plots from what compare --json wrote");
  std::string result, html, png;
  report.add_option("result", result, "the JSON file")->required();
  report.add_option("--html", html, "write one self-contained page there");
  report.add_option("--png", png, "write the plots there (needs rsvg-convert)");
  CLI::App& efficiency = *app.add_subcommand(
      "efficiency",
      "a model: how much of its time a job on the whole machine computes, by how it is checkpointed");
  EfficiencyTerms terms;
  std::string efficiency_json;
  AddEfficiency(efficiency, terms, efficiency_json);
  app.set_version_flag("--version", "siding-sim " SIDING_VERSION);
  AddManual(app, {"siding-sim", 1, SIDING_VERSION, "/usr/share/doc/siding/admin/simulator.md"});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "siding-sim: "
              << (compare.parsed()      ? "compare: "
                  : report.parsed()     ? "report: "
                  : efficiency.parsed() ? "efficiency: "
                                        : "")
              << error.what() << "\n";
    return 2;
  }
  absl::Status status;
  if (compare.parsed()) {
    status = Compare(options);
  } else if (efficiency.parsed()) {
    status = PrintEfficiency(terms, efficiency_json);
  } else if (html.empty() && png.empty()) {
    status = absl::InvalidArgumentError("report: expected --html FILE, --png FILE or both");
  } else {
    status = MakeReport(result, html, png);
  }
  if (status.ok()) return 0;
  std::cerr << "siding-sim: " << std::string(status.message()) << "\n";
  return 1;
}

}  // namespace
}  // namespace siding::sim

int main(int argc, char** argv) { return siding::sim::Main(argc, argv); }
