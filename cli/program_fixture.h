// sidingctl against a service that records what it is asked.
#pragma once

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {

class Recorder final : public v1::Siding::Service {
 public:
  // What handlers wrote is read under it, too.
  Mutex mutex;
  grpc::Status answer = grpc::Status::OK;  // to everything
  bool feasible = true;
  v1::JobSpec submitted;
  v1::ListJobsRequest listed;
  v1::EventsRequest followed;
  v1::UpdateRequest updated;
  std::vector<std::string> asked;

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override {
    MutexLock lock(mutex);
    submitted = request->spec();
    response->set_id(7);
    return answer;
  }
  grpc::Status PlanRequest(grpc::ServerContext*, const v1::SubmitRequest* request, v1::Plan* plan) override {
    MutexLock lock(mutex);
    submitted = request->spec();
    plan->set_feasible(feasible);
    plan->set_exact(true);
    plan->set_refusal("only 1 of 2 nodes");
    return answer;
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    {
      MutexLock lock(mutex);
      listed = *request;
    }
    for (int64_t id : request->ids()) {
      v1::Job& seen = *response->add_jobs();
      seen = job;
      seen.set_id(id);
    }
    return answer;
  }
  grpc::Status Events(grpc::ServerContext*, const v1::EventsRequest* request,
                      grpc::ServerWriter<v1::Event>*) override {
    MutexLock lock(mutex);
    followed = *request;
    return answer;
  }
  grpc::Status Suspend(grpc::ServerContext*, const v1::JobRef* ref, v1::Empty*) override {
    return Asked("suspend", ref->id());
  }
  grpc::Status Resume(grpc::ServerContext*, const v1::JobRef* ref, v1::Empty*) override {
    return Asked("resume", ref->id());
  }
  grpc::Status Restart(grpc::ServerContext*, const v1::RestartRequest* request, v1::Empty*) override {
    return Asked(request->running() ? "restart the running" : "restart", request->id());
  }
  grpc::Status Hold(grpc::ServerContext*, const v1::JobRef* ref, v1::Empty*) override {
    return Asked("hold", ref->id());
  }
  grpc::Status Release(grpc::ServerContext*, const v1::JobRef* ref, v1::Empty*) override {
    return Asked("release", ref->id());
  }
  grpc::Status Update(grpc::ServerContext*, const v1::UpdateRequest* request, v1::Empty*) override {
    {
      MutexLock lock(mutex);
      updated = *request;
    }
    return Asked("update", request->id());
  }
  grpc::Status PlanAction(grpc::ServerContext*, const v1::ActionRequest* request,
                          v1::ActionPlan* plan) override {
    plan->set_verb(request->verb());
    plan->set_job(request->job());
    plan->set_sequence(41);
    return Asked(request->node().empty() ? "plan " + request->verb() : "plan cordon " + request->node(),
                 request->job());
  }
  grpc::Status Kill(grpc::ServerContext*, const v1::JobRef* ref, v1::Empty*) override {
    if (ref->if_unchanged() != 0)
      return Asked("kill, if unchanged since " + std::to_string(ref->if_unchanged()), ref->id());
    return Asked("kill", ref->id());
  }
  grpc::Status Vacate(grpc::ServerContext*, const v1::CheckpointRequest* request, v1::Empty*) override {
    Leave();
    return Asked(request->tier() == v1::LOCAL ? "vacate to local" : "vacate to shared", request->id());
  }
  grpc::Status Migrate(grpc::ServerContext*, const v1::MigrateRequest* request, v1::Empty*) override {
    Leave();
    return Asked("migrate", request->id());
  }
  grpc::Status Cordon(grpc::ServerContext*, const v1::NodeRef* ref, v1::Empty*) override {
    MutexLock lock(mutex);
    asked.push_back("cordon " + ref->name());
    return answer;
  }
  grpc::Status Lose(grpc::ServerContext*, const v1::NodeRef* ref, v1::Empty*) override {
    MutexLock lock(mutex);
    asked.push_back("lose " + ref->name());
    return answer;
  }
  grpc::Status Site(grpc::ServerContext*, const v1::Empty*, v1::SiteInfo* site) override {
    site->set_cluster_manager(manager);
    site->set_now_us(now_us);
    site->set_is_operator(is_operator);
    return answer;
  }
  v1::Job job;                         // every one
  std::optional<v1::Job> after_order;  // what every one is after it was told to leave
  std::string manager;
  int64_t now_us = 0;  // the controller's time; 0: it does not say
  bool is_operator = true;
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*,
                         v1::ListNodesResponse* response) override {
    *response = nodes;
    return answer;
  }
  v1::ListNodesResponse nodes;
  grpc::Status ListCheckpoints(grpc::ServerContext*, const v1::ListCheckpointsRequest*,
                               v1::ListCheckpointsResponse*) override {
    return answer;
  }
  grpc::Status ShowPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyInForce* response) override {
    *response = policy;
    return answer;
  }
  grpc::Status ReloadPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyReloaded* response) override {
    response->set_file("/p.yaml");
    for (const char* change : {"-margin: 1s", "+margin: 2s"}) response->add_changes(change);
    response->add_warnings("no user may ask");
    return answer;
  }
  v1::PolicyInForce policy;

 private:
  void Leave() {
    if (after_order) job = *after_order;
  }
  grpc::Status Asked(const std::string& what, int64_t job) {
    MutexLock lock(mutex);
    asked.push_back(what + " " + std::to_string(job));
    return answer;
  }
};

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    service_.job.set_state("running");
    char name[] = "/tmp/siding-program-test.XXXXXX";
    folder_ = mkdtemp(name);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket(), grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~ProgramTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(folder_);
  }

  std::string socket() const { return folder_ + "/siding.sock"; }

  int Run(std::vector<const char*> arguments, std::string at = "") {
    if (at.empty()) at = socket();
    arguments.insert(arguments.begin(), {"sidingctl", "--socket", at.c_str()});
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = cli::Run(static_cast<int>(arguments.size()), arguments.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    MutexLock lock(service_.mutex);  // its handlers have returned
    return code;
  }

  std::string folder_;
  Recorder service_;
  std::unique_ptr<grpc::Server> server_;
  std::string out_, err_;
};

}  // namespace siding::cli
