// What is wrong with nodes. Pure.
#pragma once

#include "cli/doctor/finding.h"

namespace siding::cli {

// Nodes whose agents are there, and what these have said of themselves is so now. Others are findings of
// NodesAway.
std::vector<const v1::Node*> HeardNodes(const Answers& answers);
// Without those that the controller itself speaks for, which need neither criu nor tiers.
std::vector<const v1::Node*> NodesWithAgents(const Answers& answers);

// How its agent is started again. `verb`: "start" or "restart".
std::string OrderForAgent(const Answers& answers, const std::string& verb);

Findings NoNodes(const Answers& answers);
Findings NodesAway(const Answers& answers);      // down, silent, lost with jobs
Findings UnknownNodes(const Answers& answers);   // jobs are there, and no agent has dialled
Findings NodesKeptFree(const Answers& answers);  // cordoned, drained
Findings FaultyNodes(const Answers& answers);
Findings CriuProblems(const Answers& answers);
Findings CriuLimits(const Answers& answers);  // it works, but not for all jobs
Findings CriuVersions(const Answers& answers);
Findings GpuProblems(const Answers& answers);
Findings FenceProblems(const Answers& answers);
Findings Certificates(const Answers& answers);
Findings Strays(const Answers& answers);

}  // namespace siding::cli
