// Compiled where the CUDA toolkit is: its header and ours say the same.
#include <cuda.h>

#include <cstddef>

#include "agent/gpu/cuda_api.h"

namespace siding::cuda {

static_assert(kSuccess == static_cast<int>(CUDA_SUCCESS));
static_assert(kInvalidValue == static_cast<int>(CUDA_ERROR_INVALID_VALUE));
static_assert(kOutOfMemory == static_cast<int>(CUDA_ERROR_OUT_OF_MEMORY));
static_assert(kNotInitialized == static_cast<int>(CUDA_ERROR_NOT_INITIALIZED));
static_assert(kIllegalState == static_cast<int>(CUDA_ERROR_ILLEGAL_STATE));
static_assert(kNotReady == static_cast<int>(CUDA_ERROR_NOT_READY));
static_assert(kNotPermitted == static_cast<int>(CUDA_ERROR_NOT_PERMITTED));
static_assert(kNotSupported == static_cast<int>(CUDA_ERROR_NOT_SUPPORTED));
static_assert(kRunning == static_cast<int>(CU_PROCESS_STATE_RUNNING));
static_assert(kLocked == static_cast<int>(CU_PROCESS_STATE_LOCKED));
static_assert(kCheckpointed == static_cast<int>(CU_PROCESS_STATE_CHECKPOINTED));
static_assert(kFailed == static_cast<int>(CU_PROCESS_STATE_FAILED));
static_assert(sizeof(ProcessState) == sizeof(CUprocessState));

static_assert(sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(GpuPair) == sizeof(CUcheckpointGpuPair));
static_assert(offsetof(GpuPair, after) == offsetof(CUcheckpointGpuPair, newUuid));
static_assert(sizeof(LockArgs) == sizeof(CUcheckpointLockArgs));
static_assert(offsetof(LockArgs, timeout_ms) == offsetof(CUcheckpointLockArgs, timeoutMs));
static_assert(sizeof(CheckpointArgs) == sizeof(CUcheckpointCheckpointArgs));
static_assert(sizeof(RestoreArgs) == sizeof(CUcheckpointRestoreArgs));
static_assert(offsetof(RestoreArgs, pair_count) == offsetof(CUcheckpointRestoreArgs, gpuPairsCount));
static_assert(sizeof(UnlockArgs) == sizeof(CUcheckpointUnlockArgs));

}  // namespace siding::cuda
