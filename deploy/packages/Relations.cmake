# Read by CPack when the version is known: what is built together belongs together.
set(version "${CPACK_PACKAGE_VERSION}")
set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "siding-controller (= ${version})")
# It loads the same file, to take back what siding has left in Slurm.
set(CPACK_DEBIAN_CLI_PACKAGE_BREAKS "siding-slurm (<< ${version}), siding-slurm (>> ${version})")
# An agent knows one criu as its own.
set(CPACK_DEBIAN_AGENT_PACKAGE_RECOMMENDS "siding-criu, siding-cli")
set(CPACK_DEBIAN_AGENT_PACKAGE_BREAKS "siding-criu (<< ${version})")
