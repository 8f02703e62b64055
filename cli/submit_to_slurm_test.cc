// sidingctl where Slurm has the queue: what it has sbatch do, prints and exits with.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_fixture.h"
#include "gmock/gmock.h"

namespace siding::cli {
namespace {

using ::testing::HasSubstr;

// A Slurm of one command, which writes down what it is told.
class SlurmSiteTest : public ProgramTest {
 protected:
  SlurmSiteTest() {
    service_.manager = "slurm";
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~SlurmSiteTest() override { setenv("PATH", path_.c_str(), 1); }
  void Sbatch(const std::string& script) {
    const std::string file = folder_ + "/sbatch";
    std::ofstream(file) << "#!/bin/sh\necho \"$*\" > " << folder_ << "/told\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  std::string Told() {
    std::string told;
    std::getline(std::ifstream(folder_ + "/told"), told);
    return told;
  }
  const std::string path_ = std::getenv("PATH");
};

TEST_F(SlurmSiteTest, SubmitMakesASlurmJob) {
  Sbatch("echo 42");
  EXPECT_EQ(Run({"submit", "--nodes", "2", "--", "./heat"}), 0);
  EXPECT_EQ(out_, "job 42\n");
  EXPECT_THAT(Told(), HasSubstr("--job-name=heat --nodes=2 "));
  EXPECT_TRUE(service_.submitted.command().empty());
}

TEST_F(SlurmSiteTest, TheClusterBehindTheNumberIsNotTheNumber) {
  Sbatch("echo '42;north'");
  EXPECT_EQ(Run({"submit", "--json", "--", "./heat"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["id"], "42");
}

TEST_F(SlurmSiteTest, WhatSbatchSaysAgainstItIsPassedOn) {
  Sbatch("echo 'sbatch: error: no' >&2; exit 5");
  EXPECT_EQ(Run({"submit", "--", "./heat"}), 5);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(err_, "sbatch: error: no\n");
}

TEST_F(SlurmSiteTest, WhoAskedForJsonReadsThatThereIsNoJob) {
  Sbatch("echo 'sbatch: error: no' >&2; exit 5");
  EXPECT_EQ(Run({"submit", "--json", "--", "./heat"}), 5);
  EXPECT_EQ(nlohmann::json::parse(out_, nullptr, false).value("reason", ""),
            "sbatch exited with 5 and said why on stderr");
}

TEST_F(SlurmSiteTest, WaitIsSbatchsToo) {
  Sbatch("echo 42; exit 3");
  EXPECT_EQ(Run({"submit", "--wait", "--", "./heat"}), 3);
  EXPECT_EQ(out_, "job 42\n");
  EXPECT_THAT(Told(), HasSubstr(" --wait"));
}

TEST_F(SlurmSiteTest, AnAnswerThatIsNoNumberIsAnError) {
  Sbatch("echo queued");
  EXPECT_EQ(Run({"submit", "--", "./heat"}), 1);
  EXPECT_THAT(err_, HasSubstr("sbatch said 'queued', not the job's number"));
}

TEST_F(SlurmSiteTest, WhatSlurmCannotDoIsAUsageErrorAndNotSubmitted) {
  Sbatch("echo 42");
  EXPECT_EQ(Run({"submit", "--priority", "3", "--", "./heat"}), 2);
  EXPECT_THAT(err_, HasSubstr("submit: priority: "));
  EXPECT_EQ(Told(), "");
}

TEST_F(SlurmSiteTest, WithoutSbatchItSaysSo) {
  setenv("PATH", folder_.c_str(), 1);
  EXPECT_EQ(Run({"submit", "--", "./heat"}), 1);
  EXPECT_THAT(err_, HasSubstr("start sbatch: No such file or directory"));
}

TEST_F(SlurmSiteTest, PlanAsksTheController) {
  EXPECT_EQ(Run({"plan", "--start-by", "+60s", "--", "./heat"}), 0);
  EXPECT_EQ(service_.submitted.name(), "heat");
}

}  // namespace
}  // namespace siding::cli
