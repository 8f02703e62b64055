# Debian's packages, by `./run package` (docs/admin/install.md). Each component of the installation is one.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME siding)
set(CPACK_PACKAGE_VENDOR siding)
set(SIDING_PACKAGE_CONTACT "siding's developers <siding@example.org>" CACHE STRING "Who answers for the packages that are built here")
set(CPACK_PACKAGE_CONTACT "${SIDING_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)

# What is configured has the prefix in it, and none of the folders that packages are put together in.
set(CPACK_SET_DESTDIR ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/Stage.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/Relations.cmake)
set(CPACK_SIDING_SOURCE ${PROJECT_SOURCE_DIR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES OFF)  # Stage.cmake does, as the installation copies files by itself

# siding_package(COMPONENT SUMMARY TEXT [ALL] [DEPENDS ...] [RECOMMENDS ...] [SUGGESTS ...] [SCRIPTS ...])
#
# SCRIPTS: of dpkg's, in the folder of that name beside this file or in `any`.
macro(siding_package component summary text)
  cmake_parse_arguments(its "ALL" "" "DEPENDS;RECOMMENDS;SUGGESTS;SCRIPTS" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME siding-${component})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}")
  if(its_ALL)
    set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE all)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF)
  endif()
  foreach(kind DEPENDS RECOMMENDS SUGGESTS)
    string(REPLACE ";" ", " CPACK_DEBIAN_${upper}_PACKAGE_${kind} "${its_${kind}}")
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "")
  foreach(script ${its_SCRIPTS})
    list(APPEND CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/${script})
  endforeach()
endmacro()

set(CPACK_COMPONENTS_ALL "")
siding_package(controller "controller of siding, which makes room for jobs with deadlines"
  "siding suspends, checkpoints, moves or ends batch jobs of a GPU or HPC cluster\nso that what needs nodes by a time gets them, and brings everything back.\n.\nThis is sidingd, its unit, and policies."
  RECOMMENDS siding-cli SUGGESTS siding-slurm siding-dashboards siding-doc libmunge2
  SCRIPTS preinst controller/postinst controller/prerm controller/postrm controller/conffiles)
siding_package(agent "node agent of siding, which suspends and checkpoints jobs"
  "siding suspends, checkpoints, moves or ends batch jobs of a GPU or HPC cluster\nso that what needs nodes by a time gets them, and brings everything back.\n.\nThis is siding-agent, what it starts, its unit, and siding-store."
  SUGGESTS siding-slurm-plugin siding-doc libmunge2
  SCRIPTS preinst agent/postinst agent/prerm agent/postrm agent/conffiles)
siding_package(cli "commands of siding for users and administrators"
  "siding suspends, checkpoints, moves or ends batch jobs of a GPU or HPC cluster\nso that what needs nodes by a time gets them, and brings everything back.\n.\nThis is sidingctl, the simulator siding-sim, and a plugin of kubectl."
  SUGGESTS siding-doc libmunge2 SCRIPTS preinst)
siding_package(dashboards "Grafana dashboards and Prometheus alerts for siding"
  "Dashboards that Grafana provisions from files, and alerts and recording rules\nfor Prometheus. What each alert means, and what to do, is in siding-doc." ALL)
siding_package(doc "documentation of siding"
  "Pages for users and administrators, the design, and what was measured." ALL)
# As siding_slurm_22.05.so
if(TARGET siding_libslurm)
  get_target_property(slurm siding_libslurm OUTPUT_NAME)
  string(REPLACE siding_slurm_ "" slurm "${slurm}")
  siding_package(slurm "way of siding's controller to Slurm"
    "What sidingd loads where Slurm has the queue, built for Slurm ${slurm}."
    SCRIPTS preinst slurm/postinst)
endif()
if(TARGET siding_spank)
  siding_package(slurm-plugin "plugin of Slurm that makes jobs preemptible by siding"
    "The plugin for nodes and login nodes, built for Slurm ${slurm}."
    SCRIPTS preinst slurm-plugin/prerm)
endif()
# The one that get-criu has built, if it is for this version of siding.
set(criu /opt/siding/sbin/criu)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../get-criu mark REGEX "files-as-user-[0-9]+" LIMIT_COUNT 1)
string(REGEX MATCH "files-as-user-[0-9]+" mark "${mark}")
execute_process(COMMAND grep -q ${mark} ${criu} RESULT_VARIABLE is_another ERROR_QUIET)
if(is_another EQUAL 0)
  install(PROGRAMS ${criu} DESTINATION share/siding/unused COMPONENT criu EXCLUDE_FROM_ALL)
  siding_package(criu "criu that acts on files as the user whose jobs it restores"
    "Built by get-criu from Debian's source package criu with a patch of siding's,\nboth of which are in siding-agent. It does not get in the way of another criu."
    SCRIPTS preinst)
endif()
include(CPack)
