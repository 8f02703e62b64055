# What a machine gets at `cmake --install`. Programs and shared objects are put in place by rename: others start and load
# them at any moment, and a file that is written where it stands is, for that moment, a broken one.
#
#   siding_install(FOLDER COMPONENT TARGET ...)       each target's file in FOLDER, below the prefix
#   siding_install_folders(COMPONENT FOLDER ...)      folders, before CMake's install() puts something there
#   the global property SIDING_INSTALLED               the targets that are installed
#   siding_install_configured(TEMPLATE FOLDER COMPONENT)   @CMAKE_INSTALL_PREFIX@ in it becomes the prefix of the installation

# What folders may have that CMake itself makes on the way: without it, a umask of 0 makes them for everybody to write.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

function(siding_install folder component)
  set_property(GLOBAL APPEND PROPERTY SIDING_INSTALLED ${ARGN})
  foreach(target ${ARGN})
    install(CODE "
      set(from \"$<TARGET_FILE:${target}>\")
      set(to \"\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_FILE_NAME:${target}>\")
      include(\"${PROJECT_SOURCE_DIR}/cmake/InstallByRename.cmake\")" COMPONENT ${component})
  endforeach()
endfunction()

function(siding_install_folders component)
  foreach(folder ${ARGN})
    install(CODE "
      set(folder \"\${CMAKE_INSTALL_PREFIX}/${folder}\")
      include(\"${PROJECT_SOURCE_DIR}/cmake/InstallFolder.cmake\")" COMPONENT ${component})
  endforeach()
endfunction()

# The prefix is known at the installation only, since `cmake --install --prefix` may give another one.
function(siding_install_configured template folder component)
  cmake_path(GET template STEM LAST_ONLY name)
  siding_install_folders(${component} ${folder})
  install(CODE "
    configure_file(\"${CMAKE_CURRENT_SOURCE_DIR}/${template}\" \"${CMAKE_CURRENT_BINARY_DIR}/${name}\" @ONLY)"
    COMPONENT ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name} DESTINATION ${folder} COMPONENT ${component})
endfunction()
